package main

import (
	"io/fs"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// securityPage is the page whose statements these tests hold.
const securityPage = "../../docs/security.md"

func TestWhatIsLargerThanItsBoundIsRefused(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("plans", "apply", demoCatalog)
	s := i.serve()
	s.awaitStatus(http.StatusOK)

	large := `{"execution_id":"` + strings.Repeat("x", api.MaxBody) + `"}`
	for name, test := range map[string]struct {
		header, body string
		want         int
	}{
		"a body":   {"", large, http.StatusRequestEntityTooLarge},
		"a header": {strings.Repeat("x", 2*maxHeader), "{}", http.StatusRequestHeaderFieldsTooLarge},
		"a key":    {strings.Repeat("x", 256), `{"execution_id":"e1"}`, http.StatusUnprocessableEntity},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.addr+"/v1/workspaces/ws/executions", strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		if test.header != "" {
			request.Header.Set("Idempotency-Key", test.header)
		}
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if _ = response.Body.Close(); response.StatusCode != test.want {
			t.Errorf("%s: status %d, want %d", name, response.StatusCode, test.want)
		}
	}

	var answer *nats.Msg
	schematest.Eventually(t, "the API over NATS", func() bool {
		var err error
		answer, err = schematest.NATS(t).Request("headroom.api.admit", []byte(large), patience)
		return err == nil
	})
	if got := answer.Header.Get("Nats-Service-Error-Code"); got != "413" {
		t.Errorf("a large question over NATS: code %q, want 413", got)
	}

	js := i.jetStream()
	if _, err := js.Publish(t.Context(), schemas.Topology{}.Requested("ws"), []byte(large)); err != nil {
		t.Fatal(err)
	}
	letter := s.log.await(t, "message dead lettered")
	if reason, _ := letter["reason"].(string); !strings.HasPrefix(reason, string(schemas.ReasonTooLarge)) {
		t.Errorf("a large event: the dead letter's reason is %q", reason)
	}
}

func TestTheExamplesServerTakesNoMessageLargerThanAnEvent(t *testing.T) {
	t.Parallel()
	engine, _ := startPermitted(t).as("engine_ws_1", "ws_1")
	if err := engine.Publish("headroom.executions.requested.ws_1", make([]byte, 128<<10+1)); err != nats.ErrMaxPayload { //nolint:errorlint // the very error
		t.Errorf("a message of more than 128 KiB: %v", err)
	}
}

func TestTheSecurityPageNamesTestsThatAreThere(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(securityPage)
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(page), -1)
	if len(named) < 15 {
		t.Fatalf("the page names %d tests", len(named))
	}
	there := map[string]bool{}
	tree := os.DirFS("../..")
	err = fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(tree, path)
		for _, found := range regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`).FindAllStringSubmatch(string(text), -1) {
			there[found[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range named {
		if !there[name[1]] {
			t.Errorf("the page names %s, which is not there", name[1])
		}
	}
}
