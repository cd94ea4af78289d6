package main

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/client"
	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

// estate is the services that instances share, with the demo's catalog, and a relay.
type estate struct {
	testing.TB
	store *subscriptions.Store
}

func newEstate(t testing.TB) *estate {
	t.Helper()
	e := &estate{TB: t, store: subscriptions.NewStore(schematest.Postgres(t), subscriptions.StoreOptions{})}
	text, err := os.ReadFile(demoCatalog)
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := subscriptions.ParseCatalog(demoCatalog, text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.store.ApplyCatalog(t.Context(), catalog); err != nil {
		t.Fatal(err)
	}
	js := e.connect(schematest.NATSURL(t))
	if _, err := (schemas.Topology{}).Ensure(t.Context(), js); err != nil {
		t.Fatal(err)
	}
	relay, err := consumers.NewRelay(consumers.RelayOptions{
		NATS: js.Conn(), JetStream: js, Outbox: subscriptions.NewOutbox(schematest.Postgres(t)), Log: schematest.Logger(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	e.runs(relay.Run)
	return e
}

// connect is a connection as an instance has one.
func (e *estate) connect(address string) jetstream.JetStream {
	e.Helper()
	closed := make(chan struct{})
	conn, err := nats.Connect(address, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond),
		nats.ReconnectJitter(0, 0), nats.ReconnectBufSize(-1), nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() {
		conn.Close()
		<-closed
	})
	js, err := jetstream.New(conn)
	if err != nil {
		e.Fatal(err)
	}
	return js
}

func (e *estate) runs(run func(context.Context) error) {
	e.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(e.Context()))
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	e.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			e.Errorf("Run ended with %v", err)
		}
	})
}

func (e *estate) eventually(what string, is func() bool) {
	e.Helper()
	schematest.Eventually(e, what, is)
}

// assign puts the workspace on a plan, in a period of an hour unless told otherwise.
func (e *estate) assign(workspace, plan string, set ...func(*subscriptions.Assignment)) {
	e.Helper()
	a := subscriptions.Assignment{WorkspaceID: workspace, PlanKey: plan, Interval: "1h"}
	for _, each := range set {
		each(&a)
	}
	if _, err := e.store.Assign(e.Context(), a); err != nil {
		e.Fatal(err)
	}
}

// instance is what decides in one process.
type instance struct {
	*estate
	js       jetstream.JetStream
	plans    *client.Plans
	enforcer *enforcement.Enforcer
	asked    atomic.Int64
	name     string
}

// instance runs one over the NATS at address, and returns when it is current.
func (e *estate) instance(name, address string) *instance {
	e.Helper()
	i := &instance{estate: e, js: e.connect(address), name: name}
	var err error
	i.plans, err = client.NewPlans(client.PlansOptions{Source: e.store, JetStream: i.js, Log: schematest.Logger(e.TB)})
	if err != nil {
		e.Fatal(err)
	}
	i.enforcer = enforcement.New(enforcement.Options{
		Redis: schematest.Redis(e.TB), Plans: i.plans, Usage: ledger.New(schematest.Postgres(e.TB)), LeaseGrace: time.Minute,
	})
	e.runs(i.plans.Run)
	e.eventually("the instance is current", func() bool { return i.plans.Stats().Expiries >= 2 })
	return i
}

// cached is the plan that a lookup finds now.
func (i *instance) cached(workspace string) subscriptions.PlanInfo {
	i.Helper()
	info, err := i.plans.Lookup(i.Context(), workspace, time.Now())
	if err != nil {
		i.Fatal(err)
	}
	return info
}

// ask requests one more execution.
func (i *instance) ask(workspace string) enforcement.Result {
	n := i.asked.Add(1)
	return i.enforcer.Admit(i.Context(), []enforcement.Request{{
		WorkspaceID: workspace, ExecutionID: fmt.Sprintf("%s-%d", i.name, n), EventID: fmt.Sprint(n), EventSource: i.name,
	}})[0]
}

// decides requests one more execution and checks the plan it is decided on.
func (i *instance) decides(workspace, plan string) {
	i.Helper()
	got := i.ask(workspace)
	if got.Err != nil {
		i.Fatalf("%s: %v", i.name, got.Err)
	}
	if got.Decision.PlanKey != plan {
		i.Fatalf("%s decided on plan %s, want %s", i.name, got.Decision.PlanKey, plan)
	}
}
