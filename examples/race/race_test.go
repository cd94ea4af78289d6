package race_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/examples/race"
	"github.com/headroomhq/headroom/schemas/schematest"
)

func open(t *testing.T, o race.Options) *race.Race {
	t.Helper()
	o.PostgresURL = schematest.PostgresURL(t)
	r, err := race.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// barrier holds all until so many are there, again and again.
type barrier struct {
	size int

	mu      sync.Mutex
	waiting int
	open    chan struct{}
}

func (b *barrier) wait(ctx context.Context, _ pgx.Tx) error {
	b.mu.Lock()
	if b.open == nil {
		b.open = make(chan struct{})
	}
	open := b.open
	if b.waiting++; b.waiting == b.size {
		close(open)
		b.waiting, b.open = 0, nil
	}
	b.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// All have checked before the first one inserts, as may happen in any process.
func TestCheckThenInsertGoesOverTheLimit(t *testing.T) {
	t.Parallel()
	const requests = 12
	r := open(t, race.Options{Limit: 5, Requests: requests, Work: (&barrier{size: requests}).wait})
	results, err := r.Play(t.Context(), race.CheckThenInsert)
	if err != nil {
		t.Fatal(err)
	}
	want := []race.Result{{
		Way: race.CheckThenInsert, Requests: requests, Succeeded: requests, Projects: 4 + requests, OverBy: requests - 1,
	}}
	if diff := cmp.Diff(want, results, cmpopts.IgnoreFields(race.Result{}, "Took", "Why")); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

func TestTheProtectedWaysAreExact(t *testing.T) {
	t.Parallel()
	const requests = 24
	ways := []string{race.GuardProcess, race.GuardPostgres, race.Consume}
	for name, limit := range map[string]int64{"a limit of one": 1, "a limit of five": 5, "a limit of fifty": 50} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			results, err := open(t, race.Options{Limit: limit, Requests: requests}).Play(t.Context(), ways...)
			if err != nil {
				t.Fatal(err)
			}
			var want []race.Result
			for _, way := range ways {
				want = append(want, race.Result{
					Way: way, Protected: true, Requests: requests, Succeeded: 1, Refused: requests - 1, Projects: limit,
				})
			}
			if diff := cmp.Diff(want, results, cmpopts.IgnoreFields(race.Result{}, "Took", "Why")); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
			if err := race.Broken(results, limit); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAProtectedWayThatIsNotExactIsTold(t *testing.T) {
	t.Parallel()
	unprotected := race.Result{Way: race.CheckThenInsert, Succeeded: 9, Projects: 13, OverBy: 8}
	exact := race.Result{Way: race.Consume, Protected: true, Succeeded: 1, Projects: 5}
	over := race.Result{Way: race.GuardPostgres, Protected: true, Succeeded: 2, Projects: 6, OverBy: 1}
	under := race.Result{Way: race.GuardProcess, Protected: true, Projects: 4}
	if err := race.Broken([]race.Result{unprotected, exact}, 5); err != nil {
		t.Errorf("an unprotected way is told of: %v", err)
	}
	err := race.Broken([]race.Result{over, exact, under}, 5)
	want := `guard_postgres: 2 requests succeeded, and there are 6 projects where 5 are allowed
guard_process: 0 requests succeeded, and there are 4 projects where 5 are allowed`
	if err == nil || err.Error() != want {
		t.Errorf("Broken = %v\nwant %s", err, want)
	}
}

func TestTheTableShowsTheWaysSideBySide(t *testing.T) {
	t.Parallel()
	var screen strings.Builder
	err := race.Print(&screen, []race.Result{
		{Way: race.CheckThenInsert, Requests: 60, Succeeded: 31, Refused: 29, Projects: 35, OverBy: 30, Took: 1_234_567, Why: "No."},
		{Way: race.Consume, Protected: true, Requests: 60, Succeeded: 1, Refused: 59, Projects: 5, Took: 12_000_000, Why: "Yes."},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `WAY                REQUESTS  SUCCEEDED  REFUSED  PROJECTS  OVER BY  TOOK
check_then_insert  60        31         29       35        30       1.2ms
usage_consume      60        1          59       5         0        12ms

check_then_insert: No.
usage_consume: Yes.
`
	if diff := cmp.Diff(want, screen.String()); diff != "" {
		t.Errorf("the table (-want +got):\n%s", diff)
	}
}
