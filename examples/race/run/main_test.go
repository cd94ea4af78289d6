package main

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/headroomhq/headroom/examples/race"
	"github.com/headroomhq/headroom/schemas/schematest"
)

func TestMain(m *testing.M) { schematest.Main(m) }

func databases(t *testing.T) (n int) {
	t.Helper()
	const ours = `SELECT count(*) FROM pg_database WHERE datname LIKE 'headroom_race_%'`
	if err := schematest.Postgres(t).QueryRow(t.Context(), ours).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTheRaceLeavesNothingOnAServerOfOthers(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := run(t.Context(), []string{"-o", "json", "-requests", "8", "-limit", "2"}, schematest.PostgresURL(t), &out, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var results []race.Result
	if err := json.Unmarshal([]byte(out.String()), &results); err != nil {
		t.Fatal(err)
	}
	if len(results) != 4 || results[3].Way != race.Consume || results[3].Projects != 2 || results[3].Refused != 7 {
		t.Errorf("results: %+v", results)
	}
	if n := databases(t); n != 0 {
		t.Errorf("%d databases are left", n)
	}
}

func TestAPrivateServerIsStartedWithoutOne(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := run(t.Context(), []string{"-requests", "4"}, "", &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "WAY ") || !strings.Contains(out.String(), "\nguard_postgres: ") {
		t.Errorf("the screen:\n%s", out.String())
	}
}

func TestWrongUsageIsTold(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"no request":       {"-requests", "0"},
		"no project":       {"-limit", "0"},
		"another format":   {"-o", "xml"},
		"a word":           {"now"},
		"an unknown flag":  {"-speed", "2"},
		"no number at all": {"-limit", "many"},
	} {
		if err := run(t.Context(), args, "", io.Discard, io.Discard); !errors.Is(err, errUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
