package consumers_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

// held is how executions stand in a Redis that a test makes up: those of it are live
// until then, all others are not. away has every question fail.
type held struct {
	until map[string]time.Time
	away  atomic.Bool
	asked chan struct{}
}

func (h *held) Standings(_ context.Context, executions []enforcement.Execution) []enforcement.Standing {
	select {
	case h.asked <- struct{}{}:
	default:
	}
	found := make([]enforcement.Standing, len(executions))
	for i, e := range executions {
		if h.away.Load() {
			found[i].Err = enforcement.ErrUnavailable
			continue
		}
		found[i].LeaseExpiresAt, found[i].Live = h.until[e.ExecutionID]
	}
	return found
}

// watch runs a watchdog, with connections of its own as another process would have,
// until it is stopped or the test ends.
func (b *books) watch(set ...func(*consumers.WatchdogOptions)) (*consumers.Watchdog, func()) {
	b.Helper()
	nc, js, err := dial(schematest.NATSURL(b.TB))
	if err != nil {
		b.Fatal(err)
	}
	o := consumers.WatchdogOptions{
		NATS: nc, JetStream: js, Topology: b.topology, Ledger: b.store, Leases: &held{}, Grace: -1, Log: schematest.Logger(b.TB),
	}
	for _, each := range set {
		each(&o)
	}
	w, err := consumers.NewWatchdog(o)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	stop := func() {
		cancel()
		if err := <-ended; err != nil {
			b.Errorf("watchdog ended with an error: %v", err)
		}
		ended <- nil
		nc.Close()
	}
	b.Cleanup(stop)
	return w, stop
}

// admitted publishes an allow of an execution that may run ten minutes, given so long ago,
// with a lease of a day.
func (b *books) admitted(ws, execution string, ago time.Duration, change ...func(*schemas.DecisionMade)) {
	b.Helper()
	d := allowed(enforcement.Request{WorkspaceID: ws, ExecutionID: execution, EventID: "e", EventSource: "test"})
	d.DecidedAt = time.Now().Add(-ago).UTC().Truncate(time.Millisecond)
	expires := d.DecidedAt.Add(24 * time.Hour)
	d.LeaseExpiresAt, d.PlanAsOf, d.DecisionID = &expires, d.DecidedAt, ws+"-"+execution
	d.Limits.MaxExecutionDurationMinutes = schemas.LimitOf(10)
	for _, each := range change {
		each(&d)
	}
	b.decide(d)
}

func leasedFor(lease time.Duration) func(*schemas.DecisionMade) {
	return func(d *schemas.DecisionMade) {
		expires := d.DecidedAt.Add(lease)
		d.LeaseExpiresAt = &expires
	}
}

// stopped has a denial of a running execution published, as its engine's progress brings it about.
func (b *books) stopped(ws, execution string, code int) {
	b.Helper()
	d := denied(enforcement.Request{WorkspaceID: ws, ExecutionID: execution, EventID: "p", EventSource: "engine"}, code, "Stop.", time.Now())
	d.Kind, d.DecisionID = schemas.KindRuntime, fmt.Sprintf("stop-%s-%d", execution, code)
	b.decide(d)
}

// told are the executions that the watchdog told to stop, each as often as it was.
func (b *books) told() []string {
	b.Helper()
	var all []string
	for _, d := range b.decisions(0) {
		if d.RequestEventSource == schemas.SourceHeadroom && d.RequestEventID == consumers.WatchdogEvent {
			all = append(all, d.WorkspaceID+"/"+d.ExecutionID)
		}
	}
	slices.Sort(all)
	return all
}

func (b *books) expectTold(want ...string) {
	b.Helper()
	if diff := gocmp.Diff(want, b.told()); diff != "" {
		b.Errorf("told to stop (-want +got):\n%s", diff)
	}
}

// untold is how many executions the watchdog still has to tell, now or later; -1 while
// Postgres is away.
func untold(pool *pgxpool.Pool) int {
	n := -1
	_ = pool.QueryRow(context.Background(), `SELECT count(*) FROM executions
		WHERE outcome IS NULL AND duration_due_at < now()`).Scan(&n)
	return n
}

func TestTheWatchdogTellsOnceWhoRunsTooLong(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	r := b.start(&judge{}, b.keep)
	b.admitted("acme", "over", 11*time.Minute)
	b.admitted("acme", "nothing-allowed", time.Second, func(d *schemas.DecisionMade) {
		d.Limits.MaxExecutionDurationMinutes = schemas.LimitOf(0)
	})
	b.admitted("acme", "in-time", 9*time.Minute)
	b.admitted("acme", "unlimited", 100*time.Hour, leasedFor(200*time.Hour), func(d *schemas.DecisionMade) {
		d.Limits.MaxExecutionDurationMinutes = schemas.Unlimited
	})
	b.admitted("acme", "done", time.Hour)
	b.complete("acme", "done", schemas.OutcomeFailed)
	b.admitted("acme", "reported", time.Hour)
	b.stopped("acme", "reported", 9004)
	b.admitted("acme", "too-many-tasks", time.Hour)
	b.stopped("acme", "too-many-tasks", 9003)
	b.stopped("acme", "stopped-before-heard-of", 9004)
	b.admitted("acme", "stopped-before-heard-of", time.Hour)
	b.folded()

	w, stop := b.watch()
	want := []string{"acme/nothing-allowed", "acme/over", "acme/too-many-tasks"}
	b.eventually("all is told", func() bool { return untold(b.pool) == 0 })
	b.expectTold(want...)
	b.folded()
	stop()
	if n := w.Stats().Told(); n != 3 {
		t.Errorf("it counts %d told, want 3", n)
	}

	// Another one finds nothing more to tell, but what is new.
	b.admitted("acme", "later", time.Hour)
	b.folded()
	b.watch()
	b.eventually("the new one is told", func() bool { return untold(b.pool) == 0 })
	b.expectTold(slices.Insert(want, 0, "acme/later")...)
	b.folded()
	b.halt(r)

	for _, rec := range mustRecords(b, "acme") {
		if d := rec.Decision; d.ExecutionID == "over" && d.Allowed && rec.RuntimeCode != 9004 {
			t.Errorf("the ledger has %d for what was told, want 9004", rec.RuntimeCode)
		}
	}
}

func mustRecords(b *books, ws string) []ledger.Record {
	b.Helper()
	records, err := b.store.Decisions(context.Background(), ledger.Query{Workspace: ws, Limit: ledger.MaxLimit})
	if err != nil {
		b.Fatal(err)
	}
	return records
}

func TestWhatTheWatchdogDecidesIsMeasuredAgainstTheAdmission(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	b.start(&judge{}, b.keep)
	subscription := "0197b9e6-0000-7000-8000-000000000001"
	b.admitted("acme", "over", 61*time.Minute, func(d *schemas.DecisionMade) {
		d.PlanKey, d.PlanRevision, d.SubscriptionID = "pro", 7, &subscription
		d.Concurrent, d.Peak, d.Limits.MaxTasksPerExecution = 3, 4, schemas.LimitOf(50)
		d.Limits.MaxConcurrentExecutions = schemas.LimitOf(5)
	})
	b.folded()
	b.watch()
	var got schemas.DecisionMade
	for _, d := range b.decisions(2) {
		if d.Kind == schemas.KindRuntime {
			got = d
		}
	}
	minutes, none := int64(10), int64(0)
	if _, err := schemas.Encode(schemas.NewEvent(schemas.SourceHeadroom, got.DecisionID, got.DecidedAt, got)); err != nil {
		t.Errorf("it is no decision.made: %v", err)
	}
	if since := time.Since(got.DecidedAt); since < 0 || since > patience {
		t.Errorf("it was decided %s ago", since)
	}
	if got.Allowed || got.Shadow || got.Code != 9004 || got.Error != "PlanExecutionTimeout" || got.Limit != "max_execution_duration_minutes" ||
		got.Message != "The execution has run for 62 minutes; plan pro allows 10." || got.Used != 62 {
		t.Errorf("it says %+v", got)
	}
	if diff := gocmp.Diff([]any{&minutes, &none, "pro", int64(7), &subscription, int64(3), int64(4), []string{"max_execution_duration_minutes"}},
		[]any{got.LimitValue, got.Remaining, got.PlanKey, got.PlanRevision, got.SubscriptionID, got.Concurrent, got.Peak, got.Exhausted}); diff != "" {
		t.Errorf("it is measured against (-want +got):\n%s", diff)
	}
}

func TestInShadowTheWatchdogStopsNothing(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	b.start(&judge{}, b.keep)
	b.admitted("acme", "over", time.Hour)
	b.folded()
	b.watch(func(o *consumers.WatchdogOptions) { o.Shadow = true })
	if d := b.decisions(2)[1]; !d.Allowed || !d.Shadow || d.Code != 9004 {
		t.Errorf("it says %+v", d)
	}
	b.eventually("it is noted", func() bool { return untold(b.pool) == 0 })
}

func TestTwoWatchdogsTellEachExecutionOnce(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	b.start(&judge{}, b.keep)
	const executions = 400
	want := make([]string, executions)
	for i := range executions {
		ws := fmt.Sprintf("ws%02d", i%20)
		b.admitted(ws, fmt.Sprintf("x%03d", i), time.Hour)
		want[i] = fmt.Sprintf("%s/x%03d", ws, i)
	}
	slices.Sort(want)
	b.folded()
	small := func(o *consumers.WatchdogOptions) { o.BatchSize = 7 }
	one, _ := b.watch(small)
	two, _ := b.watch(small)
	b.eventually("all are told", func() bool { return untold(b.pool) == 0 })
	b.expectTold(want...)
	b.eventually("all are counted", func() bool { return one.Stats().Told()+two.Stats().Told() == executions })
}

func TestTheWatchdogWaitsForWhatTheLedgerHasNotReadYet(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	r := b.start(&judge{}, b.keep)
	b.admitted("acme", "completed", time.Hour)
	b.admitted("acme", "forgotten", time.Hour)
	b.folded()
	b.halt(r)
	b.complete("acme", "completed", schemas.OutcomeSucceeded)
	// The stream's end is not the ledger's to read.
	b.publish(b.topology.Progressed("acme"), body(b.world, "step", schemas.ExecutionProgressed{WorkspaceID: "acme", ExecutionID: "forgotten"}))

	waits := eavesdrop("the watchdog waits for the ledger")
	b.watch(func(o *consumers.WatchdogOptions) { o.Log = slog.New(waits) })
	waits.wait(t)
	b.expectTold()
	b.start(&judge{}, b.keep)
	b.eventually("all is told", func() bool { return untold(b.pool) == 0 })
	b.expectTold("acme/forgotten")
}

func TestALeaseThatEndedWithoutACompletionIsALeak(t *testing.T) {
	t.Parallel()
	w := newWhole(t, subscriptions.StoreOptions{})
	r := w.start(&judge{}, w.keep)
	live := w.enforcer.Admit(t.Context(), []enforcement.Request{{WorkspaceID: "narrow", ExecutionID: "live", EventID: "e", EventSource: "test"}})[0]
	if live.Err != nil || live.Decision.LeaseExpiresAt == nil {
		t.Fatalf("%+v", live)
	}
	// The lease of this one was moved on in Redis, of which the ledger has not heard.
	w.admitted("narrow", "live", 5*time.Minute, leasedFor(time.Minute))
	w.admitted("narrow", "leaked", 5*time.Minute, leasedFor(time.Minute))
	w.admitted("narrow", "completed", 5*time.Minute, leasedFor(time.Minute))
	w.complete("narrow", "completed", schemas.OutcomeSucceeded)
	w.admitted("narrow", "not-yet", 5*time.Minute)
	w.admitted("limited", "leaked", 5*time.Minute, leasedFor(2*time.Minute))
	w.folded()

	warned := eavesdrop("leases ended without a completion")
	dog, _ := w.watch(func(o *consumers.WatchdogOptions) { o.Leases, o.Log = w.enforcer, slog.New(warned) })
	warned.wait(t)
	w.eventually("two leaks and one extended", func() bool { return dog.Stats().Leaked() == 2 && dog.Stats().Extended() == 1 })
	if n, err := w.store.CountLeaks(t.Context()); err != nil || n != 2 {
		t.Errorf("%d leaks are open, %v", n, err)
	}
	leaks, err := w.store.Leaks(t.Context(), ledger.LeakQuery{Workspace: "narrow"})
	if err != nil || len(leaks) != 1 || leaks[0].ExecutionID != "leaked" || leaks[0].LeakedAt.Before(leaks[0].LeasedUntil) {
		t.Errorf("the leaks of one workspace are %+v, %v", leaks, err)
	}
	var until time.Time
	if err := w.pool.QueryRow(t.Context(), `SELECT leased_until FROM executions WHERE execution_id = 'live'`).Scan(&until); err != nil ||
		!until.Equal(*live.Decision.LeaseExpiresAt) {
		t.Errorf("the ledger has learned of a lease until %s, %v, want %s", until, err, live.Decision.LeaseExpiresAt)
	}

	// A completion that comes after all closes it.
	w.complete("narrow", "leaked", schemas.OutcomeFailed)
	w.folded()
	if n, err := w.store.CountLeaks(t.Context()); err != nil || n != 1 {
		t.Errorf("%d leaks are open after the completion, %v", n, err)
	}
	w.halt(r)
}

func TestWithoutRedisTheWatchdogTellsAndFindsNoLeaks(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	b.start(&judge{}, b.keep)
	redis := &held{asked: make(chan struct{}, 1)}
	redis.away.Store(true)
	b.admitted("acme", "leaked", 3*time.Minute, leasedFor(time.Minute))
	b.folded()
	dog, _ := b.watch(func(o *consumers.WatchdogOptions) { o.Leases = redis })
	select {
	case <-redis.asked:
	case <-time.After(patience):
		t.Fatal("Redis was not asked")
	}
	b.admitted("acme", "over", time.Hour)
	b.eventually("it is told", func() bool { return slices.Equal(b.told(), []string{"acme/over"}) })
	if n := dog.Stats().Leaked(); n != 0 {
		t.Errorf("%d leaks found without Redis", n)
	}
	redis.away.Store(false)
	b.eventually("Redis is back and the leak found", func() bool { return dog.Stats().Leaked() == 1 })
}

func TestRestartsOfPostgresAndNATSLoseAndRepeatNoStop(t *testing.T) {
	t.Parallel()
	server := schematest.PostgresServer(t)
	pool, err := pgxpool.New(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	b := &books{world: newWorld(t), pool: pool, store: ledger.New(pool)}
	b.start(&judge{}, b.keep)
	dog, _ := b.watch()
	const executions = 30
	admit := func(from int) {
		for i := range executions {
			b.admitted("acme", fmt.Sprintf("x%02d", from+i), time.Hour)
		}
	}
	admit(0)
	b.eventually("some are told", func() bool { return dog.Stats().Told() > 0 })
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	admit(executions)
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	admit(2 * executions)
	if err := schematest.NATSServer(t).Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.eventually("JetStream answers", func() bool {
		_, err := b.js.AccountInfo(t.Context())
		return err == nil
	})
	admit(3 * executions)
	b.folded()
	b.eventually("all are told", func() bool { return untold(pool) == 0 })
	var want []string
	for i := range 4 * executions {
		want = append(want, fmt.Sprintf("acme/x%02d", i))
	}
	slices.Sort(want)
	b.expectTold(want...)
}
