package enforcement_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

// TestMain runs the tests, or is one of the processes that a test started.
func TestMain(m *testing.M) {
	if job := os.Getenv(jobVariable); job != "" {
		os.Exit(worker(job, os.Stdout))
	}
	schematest.Main(m)
}

// plans is one reading for every workspace, until a test sets another.
type plans struct {
	mu          sync.Mutex
	info        subscriptions.PlanInfo
	err         error
	stale       *subscriptions.PlanInfo // answered until an invalidation
	lookups     int
	invalidated []int64
}

func (p *plans) Lookup(_ context.Context, workspace string, _ time.Time) (subscriptions.PlanInfo, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lookups++
	info := p.info
	if p.stale != nil {
		info = *p.stale
	}
	info.WorkspaceID = workspace
	return info, p.err
}

func (p *plans) Invalidate(_ string, revision int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.invalidated = append(p.invalidated, revision)
	p.stale = nil
}

func (p *plans) set(change func(*subscriptions.PlanInfo)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.info.ReadAt = p.info.ReadAt.Add(time.Millisecond)
	change(&p.info)
}

// database is a usage source that knows what a test tells it.
type database struct {
	mu    sync.Mutex
	known map[string]enforcement.Usage // by usage epoch
	err   error
	reads int
}

func (d *database) Usage(_ context.Context, _, epoch string) (enforcement.Usage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reads++
	return d.known[epoch], d.err
}

// house is an Enforcer with all that it stands on.
type house struct {
	*enforcement.Enforcer
	redis *redis.Client
	plans *plans
	usage *database
}

const prefix = "test"

// testFence is long enough to be seen and too short to be waited for.
const testFence = 50 * time.Millisecond

func newHouse(t testing.TB, limits schemas.Limits, options ...func(*enforcement.Options)) *house {
	t.Helper()
	return houseOver(schematest.Redis(t), limits, options...)
}

func houseOver(client *redis.Client, limits schemas.Limits, options ...func(*enforcement.Options)) *house {
	h := &house{redis: client, plans: &plans{info: planOf(limits)}, usage: &database{}}
	o := enforcement.Options{Redis: client, Plans: h.plans, Usage: h.usage, Prefix: prefix, LeaseGrace: 5 * time.Minute, RebuildFence: testFence}
	for _, set := range options {
		set(&o)
	}
	h.Enforcer = enforcement.New(o)
	return h
}

// planOf is a reading whose period began an hour ago and lasts another day.
func planOf(limits schemas.Limits) subscriptions.PlanInfo {
	now := time.Now().UTC().Truncate(time.Millisecond)
	return subscriptions.PlanInfo{
		Revision: 1, UsageEpoch: "epoch-1", Status: "active",
		SubscriptionID: "0197c3f0-0000-7000-8000-000000000001",
		Period:         subscriptions.Period{Start: now.Add(-time.Hour), End: now.Add(24 * time.Hour)},
		Snapshot:       subscriptions.Snapshot{PlanKey: "pro", PlanRevision: 3, Limits: limits},
		ReadAt:         now, Exact: true,
	}
}

// unlimited bounds nothing but what a test sets.
func unlimited(set func(*schemas.Limits)) schemas.Limits {
	var l schemas.Limits
	for _, name := range schemas.LimitNames {
		*l.Named(name) = schemas.Unlimited
	}
	if set != nil {
		set(&l)
	}
	return l
}

func ask(execution, event string) enforcement.Request {
	return enforcement.Request{WorkspaceID: "ws", ExecutionID: execution, EventID: event, EventSource: "test"}
}

// admit asks one thing, again while the workspace is rebuilt, and fails the test on an error.
func (h *house) admit(t testing.TB, r enforcement.Request) schemas.DecisionMade {
	t.Helper()
	got := h.patient(t, r)[0]
	if got.Err != nil {
		t.Fatalf("admit %s: %v", r.ExecutionID, got.Err)
	}
	return got.Decision
}

// patient is Admit, again while a workspace is rebuilt.
func (h *house) patient(t testing.TB, requests ...enforcement.Request) []enforcement.Result {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		results := h.Admit(t.Context(), requests)
		var rebuilding *enforcement.Rebuilding
		for _, r := range results {
			if errors.As(r.Err, &rebuilding) {
				break
			}
		}
		if rebuilding == nil || time.Now().After(deadline) {
			return results
		}
		select {
		case <-time.After(rebuilding.After):
		case <-t.Context().Done():
		}
	}
}

func (h *house) release(t testing.TB, execution string, outcome schemas.Outcome) enforcement.Release {
	t.Helper()
	got := h.Release(t.Context(), []enforcement.Completion{{WorkspaceID: "ws", ExecutionID: execution, Outcome: outcome}})[0]
	if got.Err != nil {
		t.Fatalf("release %s: %v", execution, got.Err)
	}
	return got
}

func (h *house) outstanding(t testing.TB, epoch string) enforcement.Outstanding {
	t.Helper()
	got, err := h.Outstanding(t.Context(), "ws", epoch)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// expire ends an execution's lease as if its time had passed.
func (h *house) expire(t testing.TB, execution string) {
	t.Helper()
	err := h.redis.ZAddXX(t.Context(), prefix+":{ws}:l", redis.Z{Score: 1, Member: execution}).Err()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
}
