package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/enforcement/client"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// wire stands between an engine and NATS; cut ends the connections there are.
type wire struct {
	listener net.Listener
	target   string
	ended    sync.WaitGroup

	mu   sync.Mutex
	open []net.Conn
}

func newWire(t *testing.T, target string) *wire {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{listener: l, target: target}
	w.ended.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			w.ended.Go(func() { w.pass(near) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		w.cut()
		w.ended.Wait()
	})
	return w
}

func (w *wire) pass(near net.Conn) {
	defer near.Close()
	far, err := new(net.Dialer).Dial("tcp", w.target)
	if err != nil {
		return
	}
	defer far.Close()
	w.mu.Lock()
	w.open = append(w.open, near)
	w.mu.Unlock()
	w.ended.Go(func() {
		_, _ = io.Copy(far, near)
		_ = far.Close()
	})
	_, _ = io.Copy(near, far)
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, conn := range w.open {
		_ = conn.Close()
	}
	w.open = nil
}

// engineOver is an engine's client whose connection passes the wire.
func engineOver(t *testing.T, w *wire) *client.Client {
	t.Helper()
	address, err := url.Parse(schematest.NATSURL(t))
	if err != nil {
		t.Fatal(err)
	}
	address.Host = w.listener.Addr().String()
	closed := make(chan struct{})
	nc, err := nats.Connect(address.String(), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond),
		nats.IgnoreDiscoveredServers(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
		nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(nc, client.Options{Source: "engine", Log: schematest.Logger(t), Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		nc.Close()
		<-closed
	})
	return c
}

func TestAnEngineWhoseConnectionsAreCutStaysWithinTheLimit(t *testing.T) {
	t.Parallel()
	const executions, room, cutEach = 200, 50, 40
	i := newInstallation(t)
	i.must("plans", "apply", catalogFile(t, "max_concurrent_executions: 2\n", fmt.Sprintf("max_concurrent_executions: %d\n", room),
		"max_executions: 100\n", "max_executions: 100000\n"))
	i.serve().awaitStatus(http.StatusOK)
	address, err := url.Parse(schematest.NATSURL(t))
	if err != nil {
		t.Fatal(err)
	}
	w := newWire(t, address.Host)
	c := engineOver(t, w)

	var running, most, admitted, ran atomic.Int64
	var all sync.WaitGroup
	begin := make(chan struct{})
	for n := range executions {
		all.Go(func() {
			<-begin
			run := admitOrWait(t, c, fmt.Sprintf("e%d", n))
			if run == nil {
				return
			}
			now := running.Add(1)
			for was := most.Load(); now > was && !most.CompareAndSwap(was, now); was = most.Load() {
			}
			// In the middle of what the others ask, report and complete.
			if admitted.Add(1)%cutEach == 1 {
				w.cut()
			}
			if err := run.Progress(t.Context()); err != nil {
				t.Errorf("progress of %s: %v", run.Decision().ExecutionID, err)
			}
			running.Add(-1)
			if err := run.Complete(t.Context(), schemas.OutcomeSucceeded); err != nil {
				t.Errorf("complete %s: %v", run.Decision().ExecutionID, err)
			}
			ran.Add(1)
		})
	}
	close(begin)
	all.Wait()
	if got := ran.Load(); got != executions {
		t.Errorf("%d of %d executions ran", got, executions)
	}
	if got := most.Load(); got > room {
		t.Errorf("%d ran at once, at most %d may", got, room)
	}
	chargedOnce(t, i, executions, room)
}

// admitOrWait asks until the execution is allowed, as an engine with a queue does.
func admitOrWait(t *testing.T, c *client.Client, id string) *client.Run {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		run, err := c.Admit(ctx, client.Execution{WorkspaceID: "ws", ID: id})
		var denied *client.Denied
		switch {
		case err == nil:
			return run
		case !errors.As(err, &denied) || denied.Code != 9002:
			t.Errorf("admit %s: %v", id, err)
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Errorf("admit %s: no slot in time", id)
			return nil
		}
	}
}

// chargedOnce looks into the record: each execution was charged once, and as many
// as may were admitted at once.
func chargedOnce(t *testing.T, i *installation, executions int, room int64) {
	t.Helper()
	stream, err := i.jetStream().Stream(t.Context(), schemas.Topology{}.Stream(schemas.StreamDecisions))
	if err != nil {
		t.Fatal(err)
	}
	charged, numbers := make(map[string]int64), make(map[int64]string)
	var most int64
	last := stream.CachedInfo().State.LastSeq
	for sequence := uint64(1); sequence <= last; sequence++ {
		m, err := stream.GetMsg(t.Context(), sequence)
		if err != nil {
			t.Fatal(err)
		}
		event, err := schemas.Decode[schemas.DecisionMade](m.Subject, m.Data)
		if err != nil {
			t.Fatal(err)
		}
		d := event.Data
		most = max(most, d.Concurrent)
		if !d.Allowed {
			continue
		}
		if number, known := charged[d.ExecutionID]; known && number != d.Used {
			t.Errorf("%s was charged as number %d and as %d", d.ExecutionID, number, d.Used)
		}
		if other := numbers[d.Used]; other != "" && other != d.ExecutionID {
			t.Errorf("%s and %s are both number %d", other, d.ExecutionID, d.Used)
		}
		charged[d.ExecutionID], numbers[d.Used] = d.Used, d.ExecutionID
	}
	if len(charged) != executions || most != room {
		t.Errorf("%d were charged, %d at once; want %d and %d", len(charged), most, executions, room)
	}
	t.Logf("%d decisions on %d executions", last, executions)
}

// benchedClient is the client of a serve without limits, both in this process.
func benchedClient(b *testing.B) *client.Client {
	b.Helper()
	i := newInstallation(b)
	i.must("plans", "apply", catalogFile(b, "max_concurrent_executions: 2\n", "max_concurrent_executions: unlimited\n",
		"max_executions: 100\n", "max_executions: unlimited\n"))
	i.serve().awaitStatus(http.StatusOK)
	c, err := client.New(schematest.NATS(b), client.Options{Source: "engine"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	if _, err := c.Admit(b.Context(), client.Execution{WorkspaceID: "ws", ID: "first"}); err != nil {
		b.Fatal(err)
	}
	return c
}

// BenchmarkAdmit is an engine's whole question and answer: the request through the
// stream, the decision through the stream, the reply to the inbox. One call at a
// time, and a hundred.
func BenchmarkAdmit(b *testing.B) {
	c := benchedClient(b)
	for _, callers := range []int{1, 100} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			var mu sync.Mutex
			var took []time.Duration
			var next atomic.Int64
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					for next.Add(1) <= int64(b.N) {
						begun := time.Now()
						run, err := c.Admit(b.Context(), client.Execution{WorkspaceID: "ws", ID: uuid.NewString()})
						if err != nil {
							b.Error(err)
							return
						}
						mu.Lock()
						took = append(took, time.Since(begun))
						mu.Unlock()
						if err := run.Complete(b.Context(), schemas.OutcomeSucceeded); err != nil {
							b.Error(err)
						}
					}
				})
			}
			all.Wait()
			slices.Sort(took)
			if n := len(took); n > 0 {
				b.ReportMetric(float64(took[n/2].Microseconds()), "p50-µs")
				b.ReportMetric(float64(took[n*99/100].Microseconds()), "p99-µs")
			}
		})
	}
}
