package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

func TestMigrateMakesTheTablesAndTheStreams(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	pool := schematest.Postgres(t)
	if _, err := pool.Exec(t.Context(), `DROP SCHEMA public CASCADE; CREATE SCHEMA public`); err != nil {
		t.Fatal(err)
	}
	i.must("migrate")
	var tables int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_tables WHERE tablename IN ('plan_revisions', 'executions')`).Scan(&tables); err != nil || tables != 2 {
		t.Errorf("%d of the two tables are there (%v)", tables, err)
	}
	for _, stream := range (schemas.Topology{}).Streams() {
		if _, err := i.jetStream().Stream(t.Context(), stream.Name); err != nil {
			t.Errorf("stream %s: %v", stream.Name, err)
		}
	}
}

func TestMigrateMayBeRepeated(t *testing.T) {
	t.Parallel()
	i := newInstallation(t).with(map[string]string{"HEADROOM_LOG_LEVEL": "info"})
	for range 2 {
		_, stderr, err := i.run("migrate")
		if err != nil {
			t.Fatalf("%v\n%s", err, stderr)
		}
		var last map[string]any
		lines := strings.Split(strings.TrimSpace(stderr), "\n")
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last["msg"] != "streams are up to date" {
			t.Errorf("the last line of the log is %s", lines[len(lines)-1])
		}
	}
	if _, err := i.jetStream().Stream(t.Context(), schemas.Topology{}.Stream(schemas.StreamDecisions)); err != nil {
		t.Errorf("migrate made no decisions stream: %v", err)
	}
}
