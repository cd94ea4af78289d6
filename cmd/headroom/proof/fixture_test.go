package proof_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/client"
	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

// patience is how long a test waits for what must happen.
const patience = 2 * time.Minute

func TestMain(m *testing.M) { schematest.Main(m) }

// house is the services, the store and the relay that all instances share.
type house struct {
	testing.TB
	js       jetstream.JetStream
	topology schemas.Topology
	pool     *pgxpool.Pool
	store    *subscriptions.Store
	ledger   *ledger.Store
	// client and fence, unless zero, are of a Redis that loses its memory.
	client *redis.Client
	fence  time.Duration
}

// plan is a plan's quota and concurrency; 0 is no limit.
type plan struct {
	key             string
	quota, parallel int
}

func newHouse(t *testing.T, plans ...plan) *house {
	t.Helper()
	js, err := jetstream.New(schematest.NATS(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (schemas.Topology{}).Ensure(t.Context(), js); err != nil {
		t.Fatal(err)
	}
	schematest.Postgres(t)
	config, err := pgxpool.ParseConfig(schematest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 20
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	h := &house{TB: t, js: js, pool: pool, store: subscriptions.NewStore(pool, subscriptions.StoreOptions{}), ledger: ledger.New(pool)}
	catalog, err := subscriptions.ParseCatalog("catalog.yaml", []byte(catalogOf(plans)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.store.ApplyCatalog(t.Context(), catalog); err != nil {
		t.Fatal(err)
	}
	relay, err := consumers.NewRelay(consumers.RelayOptions{NATS: js.Conn(), JetStream: js, Outbox: subscriptions.NewOutbox(pool), Log: schematest.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	h.runs(relay.Run)
	return h
}

func catalogOf(plans []plan) string {
	limit := func(n int) string {
		if n == 0 {
			return "unlimited"
		}
		return fmt.Sprint(n)
	}
	text := &strings.Builder{}
	fmt.Fprintln(text, "plans:")
	for i, p := range append([]plan{{key: "free"}}, plans...) {
		fmt.Fprintf(text, "  %s:\n    rank: %d\n    default: %v\n    limits:\n", p.key, i, i == 0)
		for _, name := range schemas.LimitNames {
			value := "unlimited"
			switch name {
			case schemas.LimitExecutions:
				value = limit(p.quota)
			case schemas.LimitConcurrentExecutions:
				value = limit(p.parallel)
			}
			fmt.Fprintf(text, "      %s: %s\n", name, value)
		}
	}
	return text.String()
}

// runs has a part run until the test ends.
func (h *house) runs(part func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- part(ctx) }()
	h.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			h.Errorf("a part ended with an error: %v", err)
		}
	})
}

// instance is a process of Headroom, in this one.
type instance struct {
	*consumers.Consumers
	enforcer *enforcement.Enforcer
	cache    *heard
}

// heard is a plan cache that tells which revisions it heard of.
type heard struct {
	*subscriptions.Cache
	mu        sync.Mutex
	revisions map[string]int64
}

// Invalidate is that of subscriptions.Cache.
func (c *heard) Invalidate(workspace string, revision int64) {
	c.Cache.Invalidate(workspace, revision)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revisions[workspace] = max(c.revisions[workspace], revision)
}

func (c *heard) of(workspace string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revisions[workspace]
}

// start makes an instance with connections and a plan cache of its own.
func (h *house) start() *instance {
	h.Helper()
	nc, err := nats.Connect(schematest.NATSURL(h.TB), nats.ReconnectBufSize(-1))
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		h.Fatal(err)
	}
	i := &instance{cache: &heard{Cache: subscriptions.NewCache(h.store.PlanInfo, subscriptions.CacheOptions{}), revisions: make(map[string]int64)}}
	counters, fence := h.client, h.fence
	if counters == nil {
		// A machine that is busy with other tests is not what is looked at.
		counters, fence = schematest.Redis(h.TB), patience
	}
	i.enforcer = enforcement.New(enforcement.Options{
		Redis: counters, Plans: i.cache, Usage: h.ledger,
		RebuildFence: h.fence, Watermark: consumers.NewWatermark(js, h.topology, h.ledger),
	})
	news := client.NewInvalidations(client.InvalidationsOptions{JetStream: js, Plans: i.cache, Log: schematest.Logger(h.TB)})
	i.Consumers, err = consumers.New(consumers.Options{
		NATS: nc, JetStream: js, Enforcer: i.enforcer, Ledger: h.ledger, Renewals: h.store, Plans: i.cache,
		Workers: 1, BatchSize: 32, Log: schematest.Logger(h.TB),
		UnavailableBudget: patience, RebuildFence: fence,
	})
	if err != nil {
		h.Fatal(err)
	}
	h.runs(func(ctx context.Context) error {
		parts, ctx := errgroup.WithContext(ctx)
		parts.Go(func() error { return i.Run(ctx) })
		parts.Go(func() error { return news.Run(ctx) })
		return parts.Wait()
	})
	h.eventually("an instance is ready", i.Ready)
	return i
}

func (h *house) eventually(what string, is func() bool) {
	h.Helper()
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	deadline := time.After(patience)
	for !is() {
		select {
		case <-again.C:
		case <-deadline:
			h.Fatalf("not in time: %s", what)
		}
	}
}

func (h *house) assign(a subscriptions.Assignment) subscriptions.Subscription {
	h.Helper()
	row, err := h.store.Assign(context.Background(), a)
	if err != nil {
		h.Fatal(err)
	}
	return row
}

// revision is the workspace's, as Postgres has it.
func (h *house) revision(ws string) int64 {
	h.Helper()
	found, err := h.store.Workspace(context.Background(), ws)
	if err != nil {
		h.Fatal(err)
	}
	return found.Revision
}

// broadcast waits until each instance has heard of what is committed.
func (h *house) broadcast(ws string, all []*instance) {
	h.Helper()
	revision := h.revision(ws)
	for _, i := range all {
		h.eventually("an instance hears of the change", func() bool { return i.cache.of(ws) >= revision })
	}
}

func (h *house) publish(subject string, body []byte) {
	h.Helper()
	if _, err := h.js.Publish(context.Background(), subject, body); err != nil {
		h.Fatal(err)
	}
}

func encode[T schemas.Data](t testing.TB, id string, data T) []byte {
	t.Helper()
	body, err := schemas.Encode(schemas.NewEvent("test", id, time.Now(), data))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// complete reports that the executions are over, all at once: one after the other each
// would wait behind the requests that are under way.
func (h *house) complete(ws string, executions ...string) {
	h.Helper()
	var all []jetstream.PubAckFuture
	for _, id := range executions {
		stored, err := h.js.PublishAsync(h.topology.Completed(ws), encode(h.TB, "done-"+id,
			schemas.ExecutionCompleted{WorkspaceID: ws, ExecutionID: id, Outcome: schemas.OutcomeSucceeded}))
		if err != nil {
			h.Fatal(err)
		}
		all = append(all, stored)
	}
	for _, stored := range all {
		select {
		case <-stored.Ok():
		case err := <-stored.Err():
			h.Fatal(err)
		}
	}
}

// decisions is the whole stream, in order.
func (h *house) decisions() []schemas.DecisionMade {
	h.Helper()
	stream, err := h.js.Stream(context.Background(), h.topology.Stream(schemas.StreamDecisions))
	if err != nil {
		h.Fatal(err)
	}
	n := int(stream.CachedInfo().State.Msgs)
	consumer, err := stream.OrderedConsumer(context.Background(), jetstream.OrderedConsumerConfig{})
	if err != nil {
		h.Fatal(err)
	}
	var all []schemas.DecisionMade
	for len(all) < n {
		batch, err := consumer.Fetch(min(n-len(all), 1000), jetstream.FetchMaxWait(patience))
		if err != nil {
			h.Fatal(err)
		}
		for m := range batch.Messages() {
			event, err := schemas.Decode[schemas.DecisionMade](m.Subject(), m.Data())
			if err != nil {
				h.Fatal(err)
			}
			all = append(all, event.Data)
		}
		if batch.Error() != nil {
			h.Fatal(batch.Error())
		}
	}
	return all
}

// folded waits until the ledger has all decisions.
func (h *house) folded() {
	h.Helper()
	name := h.topology.Stream(schemas.StreamDecisions)
	stream, err := h.js.Stream(context.Background(), name)
	if err != nil {
		h.Fatal(err)
	}
	last := stream.CachedInfo().State.LastSeq
	h.eventually("the ledger has all decisions", func() bool {
		at, err := h.ledger.Applied(context.Background(), name)
		return err == nil && at >= last
	})
}
