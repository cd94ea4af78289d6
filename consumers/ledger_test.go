package consumers_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

const defaultEpoch = "default.2026-11"

// books is a world with a ledger.
type books struct {
	*world
	pool  *pgxpool.Pool
	store *ledger.Store
}

func newBooks(t *testing.T) *books {
	t.Helper()
	pool := schematest.Postgres(t)
	return &books{world: newWorld(t), pool: pool, store: ledger.New(pool)}
}

func (b *books) keep(o *consumers.Options) { o.Ledger = b.store }

// decide publishes a decision as a message of its own, whatever was published before.
func (b *books) decide(d schemas.DecisionMade) {
	b.Helper()
	b.publish(b.topology.Decision(d.WorkspaceID), body(b.world, d.DecisionID, d))
}

func (b *books) allow(execution string) {
	b.Helper()
	b.decide(allowed(enforcement.Request{WorkspaceID: "acme", ExecutionID: execution, EventID: "e", EventSource: "test"}))
}

func (b *books) deny(execution string, change func(*schemas.DecisionMade)) {
	b.Helper()
	d := denied(enforcement.Request{WorkspaceID: "acme", ExecutionID: execution, EventID: "e", EventSource: "test"}, 9001, "All used.", time.Now())
	if change != nil {
		change(&d)
	}
	b.decide(d)
}

// folded waits until the ledger stands at the end of both streams.
func (b *books) folded() {
	b.Helper()
	for kind, subject := range map[schemas.StreamKind]string{
		schemas.StreamDecisions: b.topology.Decision("*"), schemas.StreamExecutions: b.topology.Completed("*"),
	} {
		name := b.topology.Stream(kind)
		stream, err := b.js.Stream(context.Background(), name)
		if err != nil {
			b.Fatal(err)
		}
		m, err := stream.GetLastMsgForSubject(context.Background(), subject)
		if err != nil {
			continue
		}
		b.eventually("folded "+name, func() bool {
			at, err := b.store.Applied(context.Background(), name)
			if err != nil {
				b.Fatal(err)
			}
			return at >= m.Sequence
		})
	}
}

// state is what the ledger says of workspace acme.
type state struct {
	Used, Denied int64
	Outcomes     map[string]string // of allowed executions
}

func (b *books) state() state {
	b.Helper()
	got := state{Outcomes: map[string]string{}}
	usage, err := b.store.Usage(context.Background(), "acme", defaultEpoch)
	if err != nil {
		b.Fatal(err)
	}
	got.Used = usage.Used
	records, err := b.store.Decisions(context.Background(), ledger.Query{Workspace: "acme", Limit: ledger.MaxLimit})
	if err != nil {
		b.Fatal(err)
	}
	for _, r := range records {
		if r.Decision.Allowed {
			got.Outcomes[r.Decision.ExecutionID] = string(r.Outcome)
		} else {
			got.Denied += r.Count
		}
	}
	return got
}

func (b *books) expect(want state) {
	b.Helper()
	b.folded()
	if diff := cmp.Diff(want, b.state()); diff != "" {
		b.Errorf("ledger (-want +got):\n%s", diff)
	}
}

func TestTheLedgerFollowsTheStreams(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	b.complete("acme", "early", schemas.OutcomeFailed)
	r := b.start(&judge{}, b.keep)
	b.allow("x")
	b.allow("early")
	b.allow("x")
	b.allow("unused")
	b.deny("y", nil)
	b.deny("z", nil)
	b.deny("long ago", func(d *schemas.DecisionMade) {
		d.ExecutionID, d.Replayed, d.DecidedAt = "z", true, time.Now().Add(-time.Hour)
	})
	b.complete("acme", "x", schemas.OutcomeSucceeded)
	b.complete("acme", "unused", schemas.OutcomeNotStarted)
	want := state{Used: 2, Denied: 2, Outcomes: map[string]string{"x": "succeeded", "early": "failed", "unused": "not_started"}}
	b.expect(want)
	b.halt(r)

	b.allow("later")
	b.start(&judge{}, b.keep)
	want.Used, want.Outcomes["later"] = 3, ""
	b.expect(want)
}

func TestWhatTheLedgerCannotTakeIsLeftOut(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	b.publish(b.topology.Decision("acme"), []byte("no decision"))
	for i := range 20 {
		b.allow(fmt.Sprintf("x%02d", i))
	}
	b.deny("nul", func(d *schemas.DecisionMade) { d.Message = "no jsonb may hold \x00" })
	b.publish(b.topology.Completed("acme"), []byte("no completion"))
	b.allow("last")
	b.start(&judge{}, b.keep)
	b.folded()
	if got := b.state(); got.Used != 21 || got.Denied != 0 || len(got.Outcomes) != 21 {
		t.Errorf("ledger has %+v, want the 21 allowed executions", got)
	}
	var reasons []string
	for _, m := range b.await(schemas.StreamDeadLetters, 3) {
		reasons = append(reasons, m.Subject+" "+strings.SplitN(m.Header.Get("Headroom-Reason"), ":", 2)[0])
	}
	want := map[string]bool{
		"headroom.deadletters.decisions.made syntax":                true,
		"headroom.deadletters.decisions.made refused by the ledger": true,
		"headroom.deadletters.executions.completed syntax":          true,
	}
	for _, reason := range reasons {
		if !want[reason] {
			t.Errorf("unexpected dead letter %q", reason)
		}
		delete(want, reason)
	}
	if len(want) > 0 {
		t.Errorf("missing dead letters: %v, have %v", want, reasons)
	}
}

func TestTheLedgerIsHandedOver(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	first := b.start(&judge{}, b.keep)
	b.allow("x")
	b.folded()
	second := b.start(&judge{}, b.keep)
	b.allow("y")
	b.folded()
	if got := b.counts(first).Folded(); got != 2 {
		t.Errorf("the first process folded %d, want both", got)
	}
	b.allow("z")
	b.expect(state{Used: 3, Outcomes: map[string]string{"x": "", "y": "", "z": ""}})
	if got := b.counts(second).Folded(); got != 1 {
		t.Errorf("the second process folded %d, want the one after the first had ended", got)
	}
}

func TestAStreamMadeAnewIsReadFromItsBeginning(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	r := b.start(&judge{}, b.keep)
	for i := range 5 {
		b.allow(fmt.Sprintf("old-%d", i))
	}
	b.folded()
	b.halt(r)
	name := b.topology.Stream(schemas.StreamDecisions)
	if err := b.js.DeleteStream(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if _, err := b.topology.Ensure(t.Context(), b.js); err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		b.allow(fmt.Sprintf("new-%d", i))
	}
	b.start(&judge{}, b.keep)
	b.eventually("13 executions in the ledger", func() bool { return b.state().Used == 13 })
}

func TestAStreamThatLostItsEndIsReadOnFromThere(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	for i := range 3 {
		b.allow(fmt.Sprintf("kept-%d", i))
	}
	name := b.topology.Stream(schemas.StreamDecisions)
	stream, err := b.js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	source := ledger.Source(name, stream.CachedInfo().Created)
	if _, err := b.store.Position(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	// The ledger folded up to 10, then the server lost all after 3.
	if err := b.store.Fold(t.Context(), ledger.Batch{Spans: []ledger.Span{{Source: source, Through: 10}}}); err != nil {
		t.Fatal(err)
	}
	b.start(&judge{}, b.keep)
	b.eventually("the position is back", func() bool {
		at, err := b.store.Position(t.Context(), source)
		return err == nil && at == 3
	})
	b.allow("next")
	b.expect(state{Used: 1, Outcomes: map[string]string{"next": ""}})
}

func TestTheLedgerOutlivesARestartOfNATS(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	b.start(&judge{}, b.keep)
	b.allow("before")
	b.folded()
	if err := schematest.NATSServer(t).Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	m := allowed(enforcement.Request{WorkspaceID: "acme", ExecutionID: "after", EventID: "e", EventSource: "test"})
	b.eventually("published after the restart", func() bool {
		_, err := b.js.Publish(t.Context(), b.topology.Decision("acme"), body(b.world, m.DecisionID, m), jetstream.WithMsgID("after"))
		return err == nil
	})
	b.expect(state{Used: 2, Outcomes: map[string]string{"before": "", "after": ""}})
}
