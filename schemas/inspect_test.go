package schemas_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

func inspect(t *testing.T, js jetstream.JetStream) schemas.Inspection {
	t.Helper()
	is, err := schemas.Topology{}.Inspect(t.Context(), js)
	if err != nil {
		t.Fatal(err)
	}
	return is
}

func TestInspectTellsWhatIsMissingAndMakesNothing(t *testing.T) {
	t.Parallel()
	js := jetStream(t, schematest.NATS(t))
	for range 2 {
		if is := inspect(t, js); len(is.Missing) != 6 || len(is.Streams) != 0 {
			t.Fatalf("of an empty server %+v is told, want six streams missing", is)
		}
	}
	ensure(t, schemas.Topology{}, js)
	is := inspect(t, js)
	if len(is.Streams)+len(is.Consumers) != everything || len(is.Missing)+len(is.Narrower)+len(is.Behind) != 0 {
		t.Errorf("after Ensure %+v is told", is)
	}
}

func TestInspectFindsWhatEnsureFinds(t *testing.T) {
	t.Parallel()
	js := jetStream(t, schematest.NATS(t))
	ensure(t, schemas.Topology{}, js)
	for _, want := range (schemas.Topology{}).Streams() {
		want.MaxBytes = 1 << 20
		if _, err := js.UpdateStream(t.Context(), want); err != nil {
			t.Fatal(err)
		}
	}
	for _, spec := range (schemas.Topology{}).Consumers() {
		spec.Config.MaxDeliver = 3
		if _, err := js.UpdateConsumer(t.Context(), spec.Stream, spec.Config); err != nil {
			t.Fatal(err)
		}
	}
	is := inspect(t, js)
	report := ensure(t, schemas.Topology{}, js)
	if diff := cmp.Diff(report.Findings, is.Narrower); diff != "" || len(is.Narrower) != 6 {
		t.Errorf("narrower (-ensure +inspect):\n%s", diff)
	}
	if diff := cmp.Diff(report.Updated, is.Behind); diff != "" || len(is.Behind) != 4 {
		t.Errorf("behind (-ensure +inspect):\n%s", diff)
	}
}

func TestMigrationsAreComparedWithoutATrace(t *testing.T) {
	t.Parallel()
	pool := schematest.Postgres(t)
	look := func() schemas.MigrationState {
		t.Helper()
		state, err := schemas.Migrations(t.Context(), pool)
		if err != nil {
			t.Fatal(err)
		}
		return state
	}
	if state := look(); len(state.Missing)+len(state.Unknown) != 0 {
		t.Errorf("of a migrated database %+v is told", state)
	}
	if _, err := pool.Exec(t.Context(), `UPDATE headroom_migrations SET version_id = 90001 WHERE version_id = 2`); err != nil {
		t.Fatal(err)
	}
	want := schemas.MigrationState{Missing: []string{"00002_ledger.sql"}, Unknown: []int64{90001}}
	if diff := cmp.Diff(want, look()); diff != "" {
		t.Errorf("one is another (-want +got):\n%s", diff)
	}
	if _, err := pool.Exec(t.Context(), `DROP TABLE headroom_migrations`); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if state := look(); len(state.Missing) < 13 || state.Missing[0] != "00001_plans_subscriptions_executions.sql" {
			t.Errorf("without the table %+v is told", state)
		}
	}
}
