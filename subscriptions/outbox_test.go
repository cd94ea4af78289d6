package subscriptions_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

// outboxPatience is how long a test waits for what must happen.
const outboxPatience = 20 * time.Second

// paper is a publisher that remembers what it was given, by workspace, and fails as a
// test tells it to.
type paper struct {
	mu      sync.Mutex
	printed map[string][]int64
	waves   int
	refuse  func(n subscriptions.News) error
}

func (p *paper) PublishNews(_ context.Context, news []subscriptions.News) []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.printed == nil {
		p.printed = make(map[string][]int64)
	}
	p.waves++
	errs := make([]error, len(news))
	for i, n := range news {
		if p.refuse != nil {
			errs[i] = p.refuse(n)
		}
		if errs[i] == nil {
			p.printed[n.WorkspaceID] = append(p.printed[n.WorkspaceID], n.Position)
		}
	}
	return errs
}

// writeNews inserts news of the workspaces in turn, and so with the positions 1, 2, 3…
func writeNews(t *testing.T, pool *pgxpool.Pool, workspaces ...string) {
	t.Helper()
	for _, ws := range workspaces {
		_, err := pool.Exec(t.Context(), `INSERT INTO outbox (id, workspace_id, subject_kind, body)
			VALUES (gen_random_uuid(), $1, 'plan.invalidated', '{}')`, ws)
		if err != nil {
			t.Fatal(err)
		}
	}
}

func waitingNews(t *testing.T, pool *pgxpool.Pool) []int64 {
	t.Helper()
	rows, err := pool.Query(t.Context(), `SELECT position FROM outbox WHERE published_at IS NULL ORDER BY position`)
	if err != nil {
		t.Fatal(err)
	}
	waiting, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		t.Fatal(err)
	}
	return waiting
}

func relay(t *testing.T, o *subscriptions.Outbox, p subscriptions.Publisher) subscriptions.Relayed {
	t.Helper()
	done, err := o.Relay(t.Context(), "", p)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func TestAPassPublishesEachWorkspaceInOrderAndMarksIt(t *testing.T) {
	t.Parallel()
	pool := schematest.Postgres(t)
	o := subscriptions.NewOutbox(pool)
	writeNews(t, pool, "a", "b", "a", "c", "a")
	p := &paper{}
	done := relay(t, o, p)
	if done.Published != 5 || done.Failed != 0 || done.Next != "" || done.More || done.Oldest.IsZero() {
		t.Errorf("the pass came to %+v", done)
	}
	if diff := cmp.Diff(map[string][]int64{"a": {1, 3, 5}, "b": {2}, "c": {4}}, p.printed); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	if p.waves != 3 {
		t.Errorf("%d waves, want one for each news of a", p.waves)
	}
	if again := relay(t, o, p); again != (subscriptions.Relayed{}) {
		t.Errorf("a second pass came to %+v", again)
	}
}

func TestAWorkspaceStopsAtItsFirstFailure(t *testing.T) {
	t.Parallel()
	pool := schematest.Postgres(t)
	o := subscriptions.NewOutbox(pool)
	writeNews(t, pool, "a", "a", "a", "b", "b")
	fault := errors.New("the stream says no")
	p := &paper{refuse: func(n subscriptions.News) error {
		if n.Position == 2 {
			return fault
		}
		return nil
	}}
	done := relay(t, o, p)
	if done.Published != 3 || done.Failed != 1 || !errors.Is(done.Fault, fault) {
		t.Errorf("the pass came to %+v", done)
	}
	if diff := cmp.Diff([]int64{2, 3}, waitingNews(t, pool)); diff != "" {
		t.Errorf("waiting (-want +got):\n%s", diff)
	}
	p.refuse = nil
	relay(t, o, p)
	if diff := cmp.Diff(map[string][]int64{"a": {1, 2, 3}, "b": {4, 5}}, p.printed); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
}

// during runs something while a pass is publishing.
type during struct {
	paper
	once sync.Once
	run  func()
}

func (d *during) PublishNews(ctx context.Context, news []subscriptions.News) []error {
	d.once.Do(d.run)
	return d.paper.PublishNews(ctx, news)
}

func TestAPassLeavesAloneWhatAnotherHas(t *testing.T) {
	t.Parallel()
	pool := schematest.Postgres(t)
	o := subscriptions.NewOutbox(pool)
	writeNews(t, pool, "a", "a")
	other := &paper{}
	first := &during{run: func() {
		writeNews(t, pool, "a", "b")
		relay(t, o, other)
	}}
	relay(t, o, first)
	if diff := cmp.Diff(map[string][]int64{"b": {4}}, other.printed); diff != "" {
		t.Errorf("the other published (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string][]int64{"a": {1, 2}}, first.printed); diff != "" {
		t.Errorf("the first published (-want +got):\n%s", diff)
	}
	relay(t, o, other)
	if diff := cmp.Diff(map[string][]int64{"a": {3}, "b": {4}}, other.printed); diff != "" {
		t.Errorf("then the other published (-want +got):\n%s", diff)
	}
}

func TestAPassThatLosesItsSessionLeavesEverythingToAnother(t *testing.T) {
	t.Parallel()
	pool := schematest.Postgres(t)
	o := subscriptions.NewOutbox(pool)
	writeNews(t, pool, "a", "b", "a")
	p := &during{run: func() {
		// With a time, it waits until the session is gone, and its locks with it.
		_, err := pool.Exec(t.Context(), `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
			WHERE datname = current_database() AND state = 'idle in transaction'`)
		if err != nil {
			t.Error(err)
		}
	}}
	if done, err := o.Relay(t.Context(), "", p); err == nil {
		t.Errorf("no error, but %+v", done)
	}
	if diff := cmp.Diff([]int64{1, 2, 3}, waitingNews(t, pool)); diff != "" {
		t.Errorf("waiting (-want +got):\n%s", diff)
	}
	relay(t, o, p)
	if diff := cmp.Diff(map[string][]int64{"a": {1, 3, 1, 3}, "b": {2, 2}}, p.printed); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
}

func TestAPassThatIsStoppedMarksWhatItPublished(t *testing.T) {
	t.Parallel()
	pool := schematest.Postgres(t)
	o := subscriptions.NewOutbox(pool)
	writeNews(t, pool, "a", "b", "a", "a")
	ctx, cancel := context.WithCancel(t.Context())
	done, err := o.Relay(ctx, "", &during{run: cancel})
	if err != nil || done.Published != 2 || !done.More {
		t.Errorf("the pass came to %+v, %v", done, err)
	}
	if diff := cmp.Diff([]int64{3, 4}, waitingNews(t, pool)); diff != "" {
		t.Errorf("waiting (-want +got):\n%s", diff)
	}
}

func TestASweepComesToEverybodyThoughManyFail(t *testing.T) {
	t.Parallel()
	pool := schematest.Postgres(t)
	o := subscriptions.NewOutbox(pool)
	const failing = 300
	for i := range failing {
		writeNews(t, pool, fmt.Sprintf("failing%03d", i))
	}
	writeNews(t, pool, "the-last")
	p := &paper{refuse: func(n subscriptions.News) error {
		if n.WorkspaceID == "the-last" {
			return nil
		}
		return errors.New("no")
	}}
	passes, failed := 0, 0
	for after := ""; passes == 0 || after != ""; passes++ {
		done, err := o.Relay(t.Context(), after, p)
		if err != nil || done.Next != "" && done.Next <= after {
			t.Fatalf("after %q: %+v, %v", after, done, err)
		}
		failed, after = failed+done.Failed, done.Next
	}
	if passes != 3 || failed != failing || len(p.printed) != 1 {
		t.Errorf("%d passes, %d failed and %v published, want 3, %d and the last", passes, failed, p.printed, failing)
	}
}

func TestALongQueueIsSaidToHaveMore(t *testing.T) {
	t.Parallel()
	pool := schematest.Postgres(t)
	o := subscriptions.NewOutbox(pool)
	for range 40 {
		writeNews(t, pool, "long")
	}
	p := &paper{}
	if done := relay(t, o, p); !done.More || done.Published != 32 {
		t.Errorf("the first pass came to %+v", done)
	}
	if done := relay(t, o, p); done.More || done.Published != 8 {
		t.Errorf("the second pass came to %+v", done)
	}
}

func TestListenWakesAtTheStartAndAtEachCommit(t *testing.T) {
	t.Parallel()
	pool := schematest.Postgres(t)
	o := subscriptions.NewOutbox(pool)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	woken, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- o.Listen(ctx, func() {
			select {
			case woken <- struct{}{}:
			case <-ctx.Done():
			}
		})
	}()
	await := func(when string) {
		t.Helper()
		select {
		case <-woken:
		case <-time.After(outboxPatience):
			t.Fatalf("not woken: %s", when)
		}
	}
	await("at the start")
	writeNews(t, pool, "a")
	await("at a commit")
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		for range 3 {
			_, err := tx.Exec(t.Context(), `INSERT INTO outbox (id, workspace_id, subject_kind, body)
				VALUES (gen_random_uuid(), 'a', 'plan.invalidated', '{}')`)
			if err != nil {
				return err
			}
		}
		select {
		case <-woken:
			t.Error("woken before the commit")
		default:
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	await("at a longer commit")
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Listen ended with %v", err)
	}
}

func TestTrimDeletesOnlyWhatWasPublishedLongAgo(t *testing.T) {
	t.Parallel()
	pool := schematest.Postgres(t)
	o := subscriptions.NewOutbox(pool)
	_, err := pool.Exec(t.Context(), `INSERT INTO outbox (id, workspace_id, subject_kind, body, created_at, published_at)
		SELECT gen_random_uuid(), 'old', 'plan.invalidated', '{}', now() - interval '9 days', now() - interval '8 days' FROM generate_series(1, 2500)`)
	if err != nil {
		t.Fatal(err)
	}
	_, err = pool.Exec(t.Context(), `INSERT INTO outbox (id, workspace_id, subject_kind, body, created_at, published_at) VALUES
		(gen_random_uuid(), 'young', 'plan.invalidated', '{}', now() - interval '9 days', now() - interval '6 days'),
		(gen_random_uuid(), 'waiting', 'plan.invalidated', '{}', now() - interval '9 days', NULL)`)
	if err != nil {
		t.Fatal(err)
	}
	deleted, err := o.Trim(t.Context(), 7*24*time.Hour)
	if err != nil || deleted != 2500 {
		t.Errorf("deleted %d, %v, want 2500", deleted, err)
	}
	rows, err := pool.Query(t.Context(), `SELECT workspace_id FROM outbox ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	left, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if diff := cmp.Diff([]string{"waiting", "young"}, left); diff != "" || err != nil {
		t.Errorf("left (-want +got):\n%s%v", diff, err)
	}
}
