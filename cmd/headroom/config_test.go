package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// password is in every URL of these tests and must be in no output.
const password = "hunter2-s3cret"

// environ answers getenv from a map.
func environ(variables map[string]string) func(string) string {
	return func(name string) string { return variables[name] }
}

func noFiles(string) ([]byte, error) { return nil, fs.ErrNotExist }

func TestAnEmptyEnvironmentGivesTheDefaultsOfTheTable(t *testing.T) {
	t.Parallel()
	got, err := LoadConfig(environ(nil), noFiles)
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		NATSURL: NewSecret("nats://127.0.0.1:4222"), NATSReplicas: 1, SubjectPrefix: "headroom",
		RedisURL: NewSecret("redis://127.0.0.1:6379/0"), RedisPrefix: "headroom",
		PostgresURL: NewSecret("postgres://127.0.0.1:5432/headroom"), HTTPAddr: "127.0.0.1:8080",
		Workers: 2, BatchSize: 512, UnavailableBudget: 10 * time.Second, RebuildFence: 2 * time.Second, LeaseGrace: 5 * time.Minute,
		LeaseDefault: 24 * time.Hour, PlanCacheTTL: 30 * time.Minute, UnknownWorkspace: "default",
		PastDueGrace: 14 * 24 * time.Hour, OverdueGrace: 72 * time.Hour, StripeOnDispute: "none", StripeMode: "live",
		UnpaidPeriod: "grant", AnchorResetUsage: "carry", PlanChangeUsage: "carry",
		LogLevel: slog.LevelInfo, LogFormat: "auto",
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Secret{})); diff != "" {
		t.Errorf("defaults differ (-want +got):\n%s", diff)
	}
}

func TestEachSettingIsReadFromItsVariable(t *testing.T) {
	t.Parallel()
	got, err := LoadConfig(environ(map[string]string{
		"HEADROOM_NATS_URL":           "nats://a:4222,tls://b:4222",
		"HEADROOM_NATS_REPLICAS":      "3",
		"HEADROOM_SUBJECT_PREFIX":     "acme.headroom",
		"HEADROOM_REDIS_URL":          "rediss://h:6380/2",
		"HEADROOM_REDIS_PREFIX":       "acme:hr",
		"HEADROOM_POSTGRES_URL":       "postgresql://h/db?sslmode=disable",
		"HEADROOM_HTTP_ADDR":          "[::1]:0",
		"HEADROOM_WORKERS":            "8",
		"HEADROOM_BATCH_SIZE":         "1000",
		"HEADROOM_UNAVAILABLE_BUDGET": "1500ms",
		"HEADROOM_REBUILD_FENCE":      "700ms",
		"HEADROOM_LEASE_GRACE":        "0s",
		"HEADROOM_LEASE_DEFAULT":      "14d",
		"HEADROOM_PLAN_CACHE_TTL":     "1h30m",
		"HEADROOM_UNKNOWN_WORKSPACE":  "deny",
		"HEADROOM_PAST_DUE_GRACE":     "7d",
		"HEADROOM_OVERDUE_GRACE":      "0s",
		"HEADROOM_UNPAID_PERIOD":      "hold",
		"HEADROOM_ANCHOR_RESET_USAGE": "reset",
		"HEADROOM_PLAN_CHANGE_USAGE":  "reset",
		"HEADROOM_SHADOW":             "TRUE",
		"HEADROOM_STRIPE_API_KEY":     "rk_test_1",
		"HEADROOM_STRIPE_API_URL":     "http://127.0.0.1:1",
		"HEADROOM_STRIPE_ON_DISPUTE":  "hold",
		"HEADROOM_STRIPE_MODE":        "test",

		"HEADROOM_STRIPE_WEBHOOK_SECRETS": "whsec_new,whsec_old",

		"HEADROOM_LOG_LEVEL":  "Debug",
		"HEADROOM_LOG_FORMAT": "tint",
	}), noFiles)
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		NATSURL: NewSecret("nats://a:4222,tls://b:4222"), NATSReplicas: 3, SubjectPrefix: "acme.headroom",
		RedisURL: NewSecret("rediss://h:6380/2"), RedisPrefix: "acme:hr",
		PostgresURL: NewSecret("postgresql://h/db?sslmode=disable"), HTTPAddr: "[::1]:0",
		Workers: 8, BatchSize: 1000, UnavailableBudget: 1500 * time.Millisecond, RebuildFence: 700 * time.Millisecond, LeaseGrace: 0,
		LeaseDefault: 14 * 24 * time.Hour, PlanCacheTTL: 90 * time.Minute, UnknownWorkspace: "deny", Shadow: true,
		PastDueGrace: 7 * 24 * time.Hour, UnpaidPeriod: "hold", AnchorResetUsage: "reset", PlanChangeUsage: "reset",
		StripeWebhookSecrets: NewSecret("whsec_new,whsec_old"), StripeAPIKey: NewSecret("rk_test_1"),
		StripeAPIURL: "http://127.0.0.1:1", StripeOnDispute: "hold", StripeMode: "test",
		LogLevel: slog.LevelDebug, LogFormat: "tint",
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Secret{})); diff != "" {
		t.Errorf("config differs (-want +got):\n%s", diff)
	}
}

func TestAFenceThatOutlastsTheBudgetIsAFault(t *testing.T) {
	t.Parallel()
	_, err := LoadConfig(environ(map[string]string{
		"HEADROOM_REBUILD_FENCE": "3s", "HEADROOM_UNAVAILABLE_BUDGET": "3s",
	}), noFiles)
	if err == nil || !strings.Contains(err.Error(), "HEADROOM_REBUILD_FENCE: is 3s, and must be less than HEADROOM_UNAVAILABLE_BUDGET") {
		t.Errorf("got %v", err)
	}
}

func TestAllFaultsAreReportedAtOnceAndNoneShowsASecret(t *testing.T) {
	t.Parallel()
	wrong := map[string]string{
		"HEADROOM_NATS_URL":           "nats://u:" + password + "/x@h",
		"HEADROOM_NATS_CREDS":         "/nowhere/creds",
		"HEADROOM_NATS_REPLICAS":      "0",
		"HEADROOM_SUBJECT_PREFIX":     "a..b",
		"HEADROOM_REDIS_URL":          "redis://:" + password + "/x@h",
		"HEADROOM_REDIS_PREFIX":       "{x}",
		"HEADROOM_POSTGRES_URL":       "postgres://u:" + password + "@h:port/db",
		"HEADROOM_HTTP_ADDR":          "8080",
		"HEADROOM_WORKERS":            "many",
		"HEADROOM_BATCH_SIZE":         "1001",
		"HEADROOM_UNAVAILABLE_BUDGET": "10",
		"HEADROOM_REBUILD_FENCE":      "99ms",
		"HEADROOM_LEASE_GRACE":        "-5m",
		"HEADROOM_LEASE_DEFAULT":      "1.5d",
		"HEADROOM_PLAN_CACHE_TTL":     "0s",
		"HEADROOM_UNKNOWN_WORKSPACE":  "allow",
		"HEADROOM_SHADOW":             "yes",
		"HEADROOM_LOG_LEVEL":          "trace",
		"HEADROOM_LOG_FORMAT":         "xml",
		"HEADROOM_STRIPE_API_KEY":     "pk_live_" + password,
		"HEADROOM_STRIPE_API_URL":     "ftp://u:" + password + "@h",
		"HEADROOM_STRIPE_ON_DISPUTE":  "refund",
		"HEADROOM_STRIPE_MODE":        "prod",

		"HEADROOM_STRIPE_WEBHOOK_SECRETS": "whsec_" + password + ", whsec_" + password,
	}
	_, err := LoadConfig(environ(wrong), noFiles)
	var faulty *ConfigError
	if !errors.As(err, &faulty) {
		t.Fatalf("error is %v, want a *ConfigError", err)
	}
	if len(faulty.Faults) != len(wrong) {
		t.Errorf("%d faults for %d wrong variables:\n%v", len(faulty.Faults), len(wrong), err)
	}
	for name := range wrong {
		if !strings.Contains(err.Error(), name+": ") {
			t.Errorf("no fault names %s:\n%v", name, err)
		}
	}
	if strings.Contains(err.Error(), password) {
		t.Errorf("the faults show a password:\n%v", err)
	}
}

func TestASecretMayStandInAFile(t *testing.T) {
	t.Parallel()
	files := func(path string) ([]byte, error) {
		switch path {
		case "/run/secrets/pg":
			return []byte("postgres://u:" + password + "@h/db\n"), nil
		case "/run/secrets/empty":
			return []byte("\n"), nil
		default:
			return nil, fs.ErrNotExist
		}
	}
	for name, test := range map[string]struct {
		variables map[string]string
		want      string // the URL, or with a leading ! part of the fault
	}{
		"read without its line end": {map[string]string{"HEADROOM_POSTGRES_URL_FILE": "/run/secrets/pg"}, "postgres://u:" + password + "@h/db"},
		"both given": {
			map[string]string{"HEADROOM_POSTGRES_URL_FILE": "/run/secrets/pg", "HEADROOM_POSTGRES_URL": "postgres://h/db"},
			"!HEADROOM_POSTGRES_URL: is given both here and as HEADROOM_POSTGRES_URL_FILE",
		},
		"file missing": {map[string]string{"HEADROOM_POSTGRES_URL_FILE": "/run/secrets/none"}, "!HEADROOM_POSTGRES_URL: read the file"},
		"file empty":   {map[string]string{"HEADROOM_POSTGRES_URL_FILE": "/run/secrets/empty"}, "!/run/secrets/empty is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, err := LoadConfig(environ(test.variables), files)
			if fault, wantFault := strings.CutPrefix(test.want, "!"); wantFault {
				if err == nil || !strings.Contains(err.Error(), fault) {
					t.Fatalf("error is %v, want %q in it", err, fault)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := config.PostgresURL.Reveal(); got != test.want {
				t.Errorf("url is %q, want %q", got, test.want)
			}
		})
	}
}

func TestAConfigShowsNoSecretHoweverItIsPrinted(t *testing.T) {
	t.Parallel()
	config, err := LoadConfig(environ(map[string]string{
		"HEADROOM_NATS_URL":     "nats://" + password + "@a:4222,nats://u:" + password + "@b:4222",
		"HEADROOM_REDIS_URL":    "redis://u:" + password + "@a:1,b:2/0?master_name=m&password=" + password,
		"HEADROOM_POSTGRES_URL": "postgres://u:" + password + "@h:5432/db?sslmode=disable&password=" + password,
	}), noFiles)
	if err != nil {
		t.Fatal(err)
	}
	var logged strings.Builder
	for _, format := range []string{"json", "tint"} {
		config.LogFormat = format
		newLogger(&logged, config).Info("settings", "config", config, "redis", config.RedisURL, "pointer", &config.RedisURL)
	}
	body, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	shown := logged.String() + string(body) + fmt.Sprint(config)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%t"} {
		shown += fmt.Sprintf(verb, config) + fmt.Sprintf(verb, &config) + fmt.Sprintf(verb, config.RedisURL)
	}
	for _, secret := range []string{password, fmt.Sprintf("%x", password), "u:"} {
		if strings.Contains(shown, secret) {
			t.Errorf("%q is shown in:\n%s", secret, shown)
		}
	}
	if want := "redis://***@a:1,b:2/0?***"; config.RedisURL.String() != want {
		t.Errorf("the redis url shows as %s, want %s", config.RedisURL, want)
	}
}

func TestASecretThatIsNoURLShowsNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		password, "redis://:" + password + "/x@h", "redis://:" + password + "#x@h", "redis://:" + password + "?x@h:1",
		"nats://u:" + password + ",x@h1,nats://h2", "user=u password=" + password,
	} {
		if shown := NewSecret(text).String(); strings.Contains(shown, password) {
			t.Errorf("%q shows as %q", text, shown)
		}
	}
}
