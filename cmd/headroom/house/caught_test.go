package house_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// TestFaultsAreCaught shows each check a tree with one fault and reads that it
// is named, because a check that finds nothing looks like one that works.
func TestFaultsAreCaught(t *testing.T) {
	t.Parallel()
	const module = `"` + modulePath
	cases := map[string]struct {
		check func(fs.FS) ([]string, error)
		file  string
		text  string
		says  string // "" for a tree that has no fault
	}{
		"an arrow that is drawn": {
			arrows, "consumers/a.go", "package consumers\nimport _ " + module + `/enforcement"`, "",
		},
		"an arrow upwards": {
			arrows, "schemas/a.go", "package schemas\nimport _ " + module + `/subscriptions"`, "schemas may import only",
		},
		"an arrow between the edges": {
			arrows, "webhooks/a.go", "package webhooks\nimport _ " + module + `/consumers"`, "webhooks/a.go imports consumers",
		},
		"an arrow to an inner room": {
			arrows, "consumers/a.go", "package consumers\nimport _ " + module + `/enforcement/api"`, "imports enforcement/api",
		},
		"an arrow into cmd": {
			arrows, "enforcement/a.go", "package enforcement\nimport _ " + module + `/cmd/headroom/replay"`, "imports cmd/headroom/replay",
		},
		"the test services in production": {
			arrows, "subscriptions/a.go", "package subscriptions\nimport _ " + module + `/schemas/schematest"`, "schemas/schematest",
		},
		"the test services in a test": {
			arrows, "subscriptions/a_test.go", "package subscriptions_test\nimport _ " + module + `/schemas/schematest"`, "",
		},
		"the fake Stripe in production": {
			arrows, "webhooks/a.go", "package webhooks\nimport _ " + module + `/webhooks/stripetest"`, "webhooks/a.go imports webhooks/stripetest",
		},
		"the fake Stripe in a test of its room": {
			arrows, "webhooks/a_test.go", "package webhooks_test\nimport _ " + module + `/webhooks/stripetest"`, "",
		},
		"the fake Stripe in a test of another room": {
			arrows, "consumers/a_test.go", "package consumers_test\nimport _ " + module + `/webhooks/stripetest"`, "imports webhooks/stripetest",
		},
		"a room that is not drawn": {
			arrows, "billing/a.go", "package billing\nimport _ " + module + `/schemas"`, "not drawn",
		},
		"a room below a room that is not drawn": {
			arrows, "schemas/extra/a.go", "package extra\nimport _ " + module + `/schemas"`, "not drawn",
		},
		"a deep room's folder": {
			arrows, "cmd/headroom/a.go", "package main\nimport _ " + module + `/cmd/headroom/replay"`, "",
		},
		"a foreign type outside of its room": {
			arrows, "consumers/a.go", "package consumers\nimport _ \"github.com/redis/go-redis/v9\"", "belongs to enforcement",
		},
		"a foreign type in a test": {
			arrows, "consumers/a_test.go", "package consumers_test\nimport _ \"github.com/redis/go-redis/v9\"", "",
		},
		"HTTP in the middle": {
			arrows, "enforcement/a.go", "package enforcement\nimport _ \"net/http\"", "imports net/http",
		},
		"a redis of the wrong kind in a test": {
			arrows, "enforcement/a_test.go", "package enforcement_test\nimport _ \"github.com/alicebob/miniredis/v2\"", "belongs to cmd/headroom/devstack",
		},
		"400 lines":  {tooLong, "schemas/a.sql", strings.Repeat("\n", 400), ""},
		"401 lines":  {tooLong, "schemas/a.sql", strings.Repeat("\n", 401), "has 401 lines"},
		"a Lua file": {tooLong, "enforcement/scripts/a.lua", strings.Repeat("\n", 500), "has 500 lines"},
		"a stranger at the top": {
			strangers, "scripts/a.sh", "", "scripts does not belong",
		},
		"two locks of one number": {
			sharedLocks, "schemas/a.go", "package a\nconst aLock, bLock int64 = 0x10, 16", "has the number of",
		},
		"two locks of two numbers": {
			sharedLocks, "schemas/a.go", "package a\nconst aLock, bLock int64 = 0x10, 17", "",
		},
		"a test that skips": {
			dishonest, "schemas/a_test.go", "package a\nfunc f(t T) {\n\tt.Skipf(\"x\")\n}", "schemas/a_test.go:3",
		},
		"a helper of tests that skips": {
			dishonest, "schemas/schematest/a.go", "package a\nfunc f(t T) {\n\tt.SkipNow()\n}", "schematest/a.go:3",
		},
		"a test that sleeps": {
			dishonest, "schemas/a_test.go", "package a\nfunc f(t T) {\n\ttime.Sleep(1)\n}", "a_test.go:3",
		},
		"a test that says so in words": {
			dishonest, "schemas/a_test.go", "package a\n// time.Sleep and t.Skip are in no code.\nconst s = `t.Skip`", "",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			faults, err := c.check(fstest.MapFS{c.file: {Data: []byte(c.text)}})
			if err != nil {
				t.Fatal(err)
			}
			said := strings.Join(faults, "\n")
			if (c.says == "") != (said == "") || !strings.Contains(said, c.says) {
				t.Errorf("found %q, want %q", said, c.says)
			}
		})
	}
}
