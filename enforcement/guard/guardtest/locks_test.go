package guardtest_test

import (
	"testing"
	"time"

	"github.com/headroomhq/headroom/enforcement/guard"
	"github.com/headroomhq/headroom/enforcement/guard/guardtest"
	"github.com/headroomhq/headroom/schemas/schematest"
)

func TestProcessLock(t *testing.T) {
	t.Parallel()
	guardtest.Run(t, inMemory(func(m *memory, patience time.Duration) guard.Lock[*memory] {
		return guard.NewProcessLock(guard.ProcessOptions[*memory]{Transact: m.transact, LockTimeout: patience})
	}))
}

func TestAdvisoryLock(t *testing.T) {
	t.Parallel()
	proveAcrossProcesses(t, "advisory")
}

func TestRowLock(t *testing.T) {
	t.Parallel()
	proveAcrossProcesses(t, "row")
}

func TestSerializableLock(t *testing.T) {
	t.Parallel()
	proveAcrossProcesses(t, "serializable")
}

func proveAcrossProcesses(t *testing.T, kind string) {
	t.Helper()
	h := harness(t, locks[kind], schematest.PostgresURL(t))
	h.Process = process(kind)
	guardtest.Run(t, h)
}

// A process lock serialises Postgres transactions of the application's own as well.
func TestProcessLockAroundTransactions(t *testing.T) {
	t.Parallel()
	guardtest.Run(t, harness(t, inProcess, schematest.PostgresURL(t)))
}

// The documented way to go through PgBouncer.
func TestLocksThroughPgBouncer(t *testing.T) {
	t.Parallel()
	for kind, lock := range locks {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			through := schematest.WithExecMode(t, schematest.PgBouncer(t, schematest.PostgresURL(t)), "exec")
			h := harness(t, lock, through)
			if kind == "advisory" {
				h.Process = process(kind)
			}
			guardtest.Run(t, h)
		})
	}
}

// What the database's default isolation is does not matter.
func TestLocksWithADefaultOfRepeatableRead(t *testing.T) {
	t.Parallel()
	for kind, lock := range locks {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			h := harness(t, lock, schematest.PostgresURL(t))
			if _, err := schematest.Postgres(t).Exec(t.Context(), `DO $$ BEGIN EXECUTE format(
				'ALTER DATABASE %I SET default_transaction_isolation = ''repeatable read''', current_database()); END $$`); err != nil {
				t.Fatal(err)
			}
			for _, finding := range guardtest.Findings(t, h, "5.2.2") {
				t.Error(finding)
			}
		})
	}
}
