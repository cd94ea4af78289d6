package api_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

// plans is one reading for every workspace, until a test sets another.
type plans struct {
	mu   sync.Mutex
	info subscriptions.PlanInfo
	err  error
}

func (p *plans) Lookup(_ context.Context, workspace string, _ time.Time) (subscriptions.PlanInfo, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	info := p.info
	info.WorkspaceID = workspace
	return info, p.err
}

func (*plans) Invalidate(string, int64) {}

func (p *plans) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

// nothing is a usage source of a database that has seen nobody.
type nothing struct{}

func (nothing) Usage(context.Context, string, string) (enforcement.Usage, error) {
	return enforcement.Usage{}, nil
}

// planOf is a reading whose period began an hour before the instant and lasts two days.
func planOf(limits schemas.Limits, now time.Time) subscriptions.PlanInfo {
	now = now.UTC().Truncate(time.Millisecond)
	return subscriptions.PlanInfo{
		Revision: 1, UsageEpoch: "epoch-1", Status: "active",
		SubscriptionID: "0197c3f0-0000-7000-8000-000000000001",
		Period:         subscriptions.Period{Start: now.Add(-time.Hour), End: now.Add(48 * time.Hour)},
		Snapshot:       subscriptions.Snapshot{PlanKey: "pro", PlanRevision: 3, Limits: limits},
		ReadAt:         now, Exact: true,
	}
}

// limits bounds the executions of a period and how many run at once; nil is no bound.
func limits(quota, atOnce *int64) schemas.Limits {
	var l schemas.Limits
	for _, name := range schemas.LimitNames {
		*l.Named(name) = schemas.Unlimited
	}
	if quota != nil {
		l.MaxExecutions = schemas.LimitOf(*quota)
	}
	if atOnce != nil {
		l.MaxConcurrentExecutions = schemas.LimitOf(*atOnce)
	}
	return l
}

// house is a door with all that it stands on.
type house struct {
	testing.TB

	*api.Executions

	enforcer *enforcement.Enforcer
	redis    redis.UniversalClient
	plans    *plans
	nats     *nats.Conn
	js       jetstream.JetStream
	topology schemas.Topology
	// offered is how many instances of the micro-service were started.
	offered int
}

// newHouse is a door on services of the test's own.
func newHouse(t testing.TB, l schemas.Limits, set ...func(*api.ExecutionsOptions)) *house {
	t.Helper()
	return houseOver(t, schematest.Redis(t), l, set...)
}

func houseOver(t testing.TB, client redis.UniversalClient, l schemas.Limits, set ...func(*api.ExecutionsOptions)) *house {
	t.Helper()
	h := &house{TB: t, redis: client, plans: &plans{info: planOf(l, time.Now())}, nats: connect(t)}
	var err error
	if h.js, err = jetstream.New(h.nats); err != nil {
		t.Fatal(err)
	}
	if _, err := h.topology.Ensure(t.Context(), h.js); err != nil {
		t.Fatal(err)
	}
	h.enforcer = enforcement.New(enforcement.Options{Redis: client, Plans: h.plans, Usage: nothing{}, LeaseGrace: 5 * time.Minute})
	h.Executions = h.another(set...)
	return h
}

// connect is a connection as a process of ours has it: it keeps nothing back for later.
func connect(t testing.TB) *nats.Conn {
	t.Helper()
	closed := make(chan struct{})
	conn, err := nats.Connect(schematest.NATSURL(t), nats.ReconnectBufSize(-1), nats.MaxReconnects(-1),
		nats.ReconnectWait(20*time.Millisecond), nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		<-closed
	})
	return conn
}

// another is one more door on the same services, as another process would have.
func (h *house) another(set ...func(*api.ExecutionsOptions)) *api.Executions {
	h.Helper()
	o, closeAll, err := optionsOver(h.js, h.enforcer)
	if err != nil {
		h.Fatal(err)
	}
	o.Log = schematest.Logger(h.TB)
	for _, each := range set {
		each(&o)
	}
	made := api.NewExecutions(o)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- made.Run(ctx) }()
	h.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			h.Errorf("the door ended with an error: %v", err)
		}
		closeAll()
	})
	return made
}

// optionsOver is what a door needs, over the default streams.
func optionsOver(js jetstream.JetStream, e api.Enforcer) (o api.ExecutionsOptions, closeAll func(), err error) {
	publisher, err := schemas.NewPublisher(js, schemas.PublisherOptions{})
	if err != nil {
		return o, nil, err
	}
	stream, err := js.Stream(context.Background(), schemas.Topology{}.Stream(schemas.StreamDecisions))
	if err != nil {
		publisher.Close()
		return o, nil, err
	}
	writer := schemas.NewDecisionWriter(schemas.DecisionWriterOptions{Store: publisher, Stored: stream})
	return api.ExecutionsOptions{Enforcer: e, Decisions: writer, Events: publisher}, publisher.Close, nil
}

// asking is a request for an execution of workspace ws.
func asking(execution, event string) enforcement.Request {
	return enforcement.Request{WorkspaceID: "ws", ExecutionID: execution, EventID: event, EventSource: "test"}
}

// admit asks one thing and fails the test on an error.
func (h *house) admit(execution, event string) schemas.DecisionMade {
	h.Helper()
	d, err := h.Admit(h.Context(), asking(execution, event))
	if err != nil {
		h.Fatal(err)
	}
	return d
}

func (h *house) outstanding() enforcement.Outstanding {
	h.Helper()
	got, err := h.enforcer.Outstanding(h.Context(), "ws", "epoch-1")
	if err != nil {
		h.Fatal(err)
	}
	return got
}

// stored is the messages of a stream so far, in order.
func (h *house) stored(kind schemas.StreamKind) []jetstream.Msg {
	h.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	stream, err := h.js.Stream(ctx, h.topology.Stream(kind))
	if err != nil {
		h.Fatal(err)
	}
	n := int(stream.CachedInfo().State.Msgs)
	if n == 0 {
		return nil
	}
	reader, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true})
	if err != nil {
		h.Fatal(err)
	}
	var all []jetstream.Msg
	for len(all) < n {
		fetched, err := reader.Fetch(n-len(all), jetstream.FetchContext(ctx))
		if err != nil {
			h.Fatal(err)
		}
		for m := range fetched.Messages() {
			all = append(all, m)
		}
		if err := fetched.Error(); err != nil {
			h.Fatalf("read %s after %d of %d messages: %v", kind, len(all), n, err)
		}
	}
	return all
}

// decisions are those in the stream so far.
func (h *house) decisions() []schemas.DecisionMade {
	h.Helper()
	var all []schemas.DecisionMade
	for _, m := range h.stored(schemas.StreamDecisions) {
		event, err := schemas.Decode[schemas.DecisionMade](m.Subject(), m.Data())
		if err != nil {
			h.Fatal(err)
		}
		all = append(all, event.Data)
	}
	return all
}

// allows counts the executions that the stream lets start.
func allows(decisions []schemas.DecisionMade) int {
	allowed := map[string]bool{}
	for _, d := range decisions {
		if d.Admits() {
			allowed[d.WorkspaceID+" "+d.ExecutionID] = true
		}
	}
	return len(allowed)
}

// eventually asks again and again until it is so.
func (h *house) eventually(what string, is func() bool) {
	h.Helper()
	schematest.Eventually(h, what, is)
}
