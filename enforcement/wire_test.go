package enforcement_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// cutter stands between a client and Redis and, when armed, lets the next
// request through and cuts the connection instead of the reply.
type cutter struct {
	listener net.Listener
	target   string
	armed    atomic.Int32 // how many more replies to cut
	cuts     atomic.Int32
	open     sync.WaitGroup
}

func newCutter(t *testing.T, target string) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{listener: l, target: target}
	c.open.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.open.Go(func() { c.pass(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		c.open.Wait()
	})
	return c
}

func (c *cutter) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", c.target)
	if err != nil {
		return
	}
	defer server.Close()
	c.open.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		if c.armed.Load() > 0 && c.armed.Add(-1) >= 0 {
			c.cuts.Add(1)
			return
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}

// through is a client whose connections pass the cutter.
func (c *cutter) through(t *testing.T, address string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	options.Addr = c.listener.Addr().String()
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestAReplyLostAfterTheScriptRanCountsOnce(t *testing.T) {
	t.Parallel()
	address := schematest.RedisURL(t)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := newCutter(t, u.Host)
	limits := unlimited(func(l *schemas.Limits) {
		l.MaxExecutions, l.MaxConcurrentExecutions = schemas.LimitOf(10), schemas.LimitOf(10)
	})
	h := houseOver(proxy.through(t, address), limits)
	direct := newHouse(t, limits)
	h.admit(t, ask("e0", "1"))
	for i, execution := range []string{"e1", "e2", "e3", "e4"} {
		proxy.armed.Store(1)
		// The client may send the script again by itself, or the caller does.
		got := h.Admit(t.Context(), []enforcement.Request{ask(execution, "1")})[0]
		if got.Err != nil {
			got = h.Admit(t.Context(), []enforcement.Request{ask(execution, "1")})[0]
		}
		if got.Err != nil || !got.Decision.Allowed || got.Decision.Used != int64(i+2) {
			t.Errorf("%s: %+v, error %v, want the allow that was taken unheard", execution, got.Decision, got.Err)
		}
		proxy.armed.Store(1)
		h.Release(t.Context(), []enforcement.Completion{{WorkspaceID: "ws", ExecutionID: execution, Outcome: schemas.OutcomeNotStarted}})
		h.release(t, execution, schemas.OutcomeNotStarted)
		h.admit(t, ask(execution+"-again", "1"))
	}
	if proxy.cuts.Load() < 8 {
		t.Fatalf("%d replies were cut, want 8", proxy.cuts.Load())
	}
	if got := direct.outstanding(t, "epoch-1"); got.Used != 5 || got.Running != 5 {
		t.Errorf("used %d, running %d, want 5 of both", got.Used, got.Running)
	}
}

func TestAScriptCacheFlushedInTheMiddleOfAPipelineChangesNothing(t *testing.T) {
	t.Parallel()
	server := schematest.RedisServer(t)
	options, err := redis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	client, flusher := redis.NewClient(options), redis.NewClient(options)
	t.Cleanup(func() { _, _ = client.Close(), flusher.Close() })
	h := houseOver(client, unlimited(func(l *schemas.Limits) { l.MaxExecutions = schemas.LimitOf(3) }))

	done := make(chan int)
	stop := make(chan struct{})
	go func() {
		flushes := 0
		for {
			select {
			case <-stop:
				done <- flushes
				return
			default:
				flusher.ScriptFlush(t.Context())
				flushes++
			}
		}
	}()
	const workspaces = 40
	deadline := time.Now().Add(2 * time.Second)
	for round := range 25 {
		var requests []enforcement.Request
		for w := range workspaces {
			for _, execution := range []string{"a", "b", "c", "d"} {
				r := ask(execution, "1")
				r.WorkspaceID = fmt.Sprintf("ws%d", w+1000*round)
				requests = append(requests, r)
			}
		}
		got := answersOf(t, h, requests)
		for i, d := range got {
			if want := i%4 != 3; d.Allowed != want {
				t.Fatalf("round %d, %s of %s: allowed %v, want %v", round, d.ExecutionID, d.WorkspaceID, d.Allowed, want)
			}
		}
		if time.Now().After(deadline) {
			break
		}
	}
	close(stop)
	if flushes := <-done; flushes == 0 {
		t.Fatal("the script cache was never flushed")
	}
}

// answersOf asks until each request has its answer: under a cache that is
// flushed all the time even the text of a script can be forgotten before it is used.
func answersOf(t *testing.T, h *house, requests []enforcement.Request) []schemas.DecisionMade {
	t.Helper()
	answers := make([]schemas.DecisionMade, len(requests))
	for i, got := range h.Admit(t.Context(), requests) {
		if got.Err != nil {
			t.Fatalf("answer %d: %v", i, got.Err)
		}
		answers[i] = got.Decision
	}
	return answers
}

func TestARestartedRedisThatForgotTheScriptsIsServedAgain(t *testing.T) {
	t.Parallel()
	server := schematest.DurableRedisServer(t)
	options, err := redis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	h := houseOver(client, unlimited(func(l *schemas.Limits) { l.MaxExecutions = schemas.LimitOf(2) }))
	first := h.admit(t, ask("a", "1"))
	h.usage.known = map[string]enforcement.Usage{"epoch-1": {Used: 1, Peak: 1, Leases: []enforcement.Lease{
		{ExecutionID: "a", ExpiresAt: *first.LeaseExpiresAt, AdmittedAt: first.DecidedAt},
	}}}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := h.admit(t, ask("a", "1"))
	if !again.Replayed || again.DecisionID != first.DecisionID || again.Used != 1 {
		t.Errorf("replayed %v, used %d, want the first answer repeated", again.Replayed, again.Used)
	}
	if d := h.admit(t, ask("b", "1")); d.Used != 2 {
		t.Errorf("used %d, want 2", d.Used)
	}
}

// scripted answers each pipeline in Redis's place.
type scripted struct{ reply any }

func (scripted) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (scripted) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (s scripted) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, commands []redis.Cmder) error {
		for _, c := range commands {
			c.(*redis.Cmd).SetVal(s.reply)
		}
		return nil
	}
}

func TestAReplyThatNoScriptGivesAdmitsNobody(t *testing.T) {
	t.Parallel()
	now := time.Now().UnixMilli()
	denial := func(reasons byte) string {
		return "fD" + strings.Repeat("\x00", 8) + string([]byte{reasons}) + strings.Repeat("\x00", 23)
	}
	replies := map[string]any{
		"nothing": nil, "a text": "OK", "an empty list": []any{}, "a clock alone": []any{int64(0), now},
		"lists in a list":          []any{[]any{}, []any{}, []any{}},
		"stale without revisions":  []any{int64(1), now},
		"missing without a what":   []any{int64(2), now},
		"no answer":                []any{int64(0), now, nil},
		"an empty answer":          []any{int64(0), now, ""},
		"an answer cut short":      []any{int64(0), now, "fA"},
		"an unknown status":        []any{int64(0), now, "fX" + strings.Repeat("\x00", 34)},
		"a denial for no reason":   []any{int64(0), now, denial(0), strings.Repeat("\x00", 8), "{}"},
		"a denial for a new one":   []any{int64(0), now, denial(1 << 6), strings.Repeat("\x00", 8), "{}"},
		"a snapshot that is none":  []any{int64(0), now, denial(2), "digest", "{"},
		"a snapshot with no terms": []any{int64(0), now, denial(2), strings.Repeat("\x00", 8), "{}"},
	}
	for name, reply := range replies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
			t.Cleanup(func() { _ = client.Close() })
			client.AddHook(scripted{reply})
			h := houseOver(client, unlimited(nil))
			tasks := int64(1) << 50
			if got := h.Admit(t.Context(), []enforcement.Request{ask("a", "1")})[0]; got.Decision.Allowed {
				t.Errorf("admitted: %+v", got.Decision)
			}
			if got := h.Withdraw(t.Context(), []enforcement.Request{ask("a", "1")})[0]; got.Decision.Allowed {
				t.Errorf("withdrawn as an allow: %+v", got.Decision)
			}
			if got := h.Release(t.Context(), []enforcement.Completion{{WorkspaceID: "ws", ExecutionID: "a", Outcome: schemas.OutcomeFailed}})[0]; got.Released {
				t.Errorf("released: %+v", got)
			}
			if got := h.Extend(t.Context(), []enforcement.Progress{{WorkspaceID: "ws", ExecutionID: "a", Tasks: &tasks}})[0]; got.Decision != nil {
				t.Errorf("refused: %+v", got.Decision)
			}
		})
	}
}
