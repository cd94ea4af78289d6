package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadmeListsTheSettingsAsTheyAre(t *testing.T) {
	t.Parallel()
	body, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "| `"+variablePrefix) {
			got = append(got, strings.TrimSpace(line))
		}
	}
	for _, s := range Settings() {
		value := "none"
		if s.Default != "" {
			value = "`" + s.Default + "`"
		}
		want = append(want, "| `"+s.Name+"` | "+value+" | "+s.Meaning+" |")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("README's settings differ from the program's (-program +README):\n%s", diff)
	}
}

func TestEachSettingIsDescribedOnce(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range Settings() {
		if seen[s.Name] {
			t.Errorf("%s is there twice", s.Name)
		}
		seen[s.Name] = true
		if !strings.HasPrefix(s.Name, variablePrefix) || !strings.HasSuffix(s.Meaning, ".") {
			t.Errorf("%s (%q) lacks the prefix or a sentence", s.Name, s.Meaning)
		}
		// The API's URL is refused with a password in it. The key of NATS is a path.
		secret := strings.HasSuffix(s.Name, "_URL") && s.Name != "HEADROOM_STRIPE_API_URL" ||
			strings.HasSuffix(s.Name, "_SECRETS") || strings.HasSuffix(s.Name, "_KEY") && s.Name != "HEADROOM_NATS_KEY" || strings.HasSuffix(s.Name, "_TOKENS")
		if secret != s.Secret {
			t.Errorf("%s: a URL may carry a password, and a key or token is one, but secret is %t", s.Name, s.Secret)
		}
	}
}

func TestVariablesWithoutEffectAreNamed(t *testing.T) {
	t.Parallel()
	set := map[string]string{
		"HEADROOM_REDIS_ULR":               "x",
		"HEADROOM_COLOUR_OF_THE_SKY":       "x",
		"HEADROOM_WORKERS":                 "2",
		"HEADROOM_POSTGRES_URL_FILE":       "/x",
		"HEADROOM_WORKERS_FILE":            "/x",
		"HEADROOM_SHADOW_OFF":              "",
		"HEADROOM_SERVICE_HOST":            "10.0.0.1",
		"HEADROOM_PORT_8080_TCP_ADDR":      "10.0.0.1",
		"HEADROOMS":                        "x",
		"HEADROOM_REDIS_SERVICE_SOMETHING": "x",
	}
	var names []string
	for name := range set {
		names = append(names, name+"="+set[name])
	}
	got := map[string]string{}
	for _, unused := range unusedVariables(environ(set), names) {
		got[unused.Variable] = unused.Reason
	}
	want := map[string]string{
		"HEADROOM_REDIS_ULR":               "no such setting; did you mean HEADROOM_REDIS_URL?",
		"HEADROOM_COLOUR_OF_THE_SKY":       "no such setting; README lists them",
		"HEADROOM_WORKERS_FILE":            "no such setting; README lists them",
		"HEADROOM_REDIS_SERVICE_SOMETHING": "no such setting; README lists them",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("variables without effect differ (-want +got):\n%s", diff)
	}
}
