package proof_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/cmd/headroom/devstack"
	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

const (
	lossQuota  = 150
	lossSpaces = 8
	lossFence  = time.Second
	// resumed is how long after a loss decisions are taken again.
	resumed = 5 * time.Second
)

// memory is a Redis that can lose what it knows.
type memory struct {
	testing.TB
	client *redis.Client
	server *devstack.Redis
	// at is the address that new connections lead to.
	at atomic.Pointer[string]
}

func newMemory(t testing.TB) *memory {
	t.Helper()
	m := &memory{TB: t, server: schematest.RedisServer(t)}
	options := m.options(m.server)
	m.lead(options.Addr)
	options.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, *m.at.Load())
	}
	options.ContextTimeoutEnabled, options.MaxRetries, options.DialerRetries = true, 1, 1
	m.client = redis.NewClient(options)
	t.Cleanup(func() { _ = m.client.Close() })
	return m
}

func (m *memory) lead(addr string) { m.at.Store(&addr) }

func (m *memory) options(server *devstack.Redis) *redis.Options {
	options, err := redis.ParseURL(server.URL())
	if err != nil {
		m.Fatal(err)
	}
	return options
}

func (m *memory) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

// remember prepares the loss that a kind is about.
func (m *memory) remember(kind string) (lose func()) {
	m.Helper()
	ctx := context.Background()
	switch kind {
	case "flushed":
		return func() { m.must(m.client.FlushAll(ctx).Err()) }
	case "restarted from an old copy":
		m.must(m.client.Save(ctx).Err())
		return func() {
			m.must(m.server.Kill())
			m.must(m.server.Restart(ctx))
		}
	default:
		return m.replica()
	}
}

// replica is a copy of now, which stops following and takes over later.
func (m *memory) replica() (lose func()) {
	m.Helper()
	ctx := context.Background()
	first, second := m.server, schematest.RedisServer(m.TB)
	from, to := m.options(first), m.options(second)
	client := redis.NewClient(to)
	defer func() { _ = client.Close() }()
	host, port, err := net.SplitHostPort(from.Addr)
	m.must(err)
	m.must(client.ConfigSet(ctx, "masterauth", m.client.Options().Password).Err())
	m.must(m.client.ConfigSet(ctx, "repl-diskless-sync-delay", "0").Err())
	m.must(client.Do(ctx, "REPLICAOF", host, port).Err())
	follows := func() bool {
		role, err := client.Do(ctx, "ROLE").Slice()
		return err == nil && len(role) > 3 && fmt.Sprint(role[3]) == "connected"
	}
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for deadline := time.After(patience); !follows(); {
		select {
		case <-again.C:
		case <-deadline:
			m.Fatal("the replica does not follow")
		}
	}
	m.must(client.Do(ctx, "REPLICAOF", "NO", "ONE").Err())
	m.must(client.ConfigSet(ctx, "requirepass", m.client.Options().Password).Err())
	return func() {
		m.lead(to.Addr)
		m.must(first.Kill())
		m.server = second
	}
}

func TestARedisThatLosesItsMemoryAdmitsNoMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"flushed", "restarted from an old copy", "a lagging replica was promoted"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			loseAgainAndAgain(t, kind)
		})
	}
}

func loseAgainAndAgain(t *testing.T, kind string) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	m := newMemory(t)
	h := newHouse(t, plan{key: "small", quota: lossQuota})
	h.client, h.fence = m.client, lossFence
	var spaces []string
	for i := range lossSpaces {
		ws := fmt.Sprintf("w%d", i)
		h.assign(subscriptions.Assignment{WorkspaceID: ws, PlanKey: "small"})
		spaces = append(spaces, ws)
	}
	first := h.start()
	for range 2 {
		h.start()
	}
	load := h.ask(100, spaces...)
	some := func(schemas.DecisionMade) bool { return true }
	sofar := 0
	// The quota of all is used up about at the third loss, and the others come after.
	for round := range 5 {
		lose := m.remember(kind)
		sofar += lossQuota*lossSpaces/4 + random.IntN(lossQuota)
		load.until(sofar, "decided", some)
		lose()
		lost := time.Now()
		sofar = load.count() + 100 // all that was under way, and one more
		load.until(sofar+1, "decided after the loss", some)
		took := time.Since(lost)
		t.Logf("loss %d: decisions after %s", round, took.Round(time.Millisecond))
		if took > resumed {
			t.Errorf("loss %d: nothing was decided for %s", round, took)
		}
	}
	load.until(lossQuota*lossSpaces, "allowed", func(d schemas.DecisionMade) bool { return d.Allowed })
	load.halt()
	h.folded()
	h.checkLosses(first, spaces)
}

// checkLosses holds the stream against the quota, the ledger and Redis.
func (h *house) checkLosses(i *instance, spaces []string) {
	h.Helper()
	allowed := map[string]map[string]bool{}
	for _, d := range h.decisions() {
		if d.Code == enforcement.CodeUnavailable {
			h.Errorf("execution %s was refused with a 9008", d.ExecutionID)
		}
		if d.Allowed {
			if allowed[d.WorkspaceID] == nil {
				allowed[d.WorkspaceID] = map[string]bool{}
			}
			allowed[d.WorkspaceID][d.ExecutionID] = true
		}
	}
	for _, ws := range spaces {
		if n := len(allowed[ws]); n != lossQuota {
			h.Errorf("workspace %s: %d executions were allowed, want its quota of %d", ws, n, lossQuota)
		}
		row := h.row(ws)
		known, err := h.ledger.Usage(context.Background(), ws, row.ID)
		if err != nil {
			h.Fatal(err)
		}
		if redis := h.counted(i, ws, row.ID); redis.Used != known.Used {
			h.Errorf("workspace %s: Redis has used %d, the ledger %d", ws, redis.Used, known.Used)
		}
	}
}
