package api_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// counters answer what a test tells them, and a balance of 4 of 5 otherwise.
type counters struct {
	err error

	mu    sync.Mutex
	calls []changed
}

type changed struct {
	once   usage.Once
	change usage.Change
}

func (c *counters) ConsumeOnce(_ context.Context, once usage.Once, change usage.Change) (usage.Balance, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, changed{once, change})
	return usage.Balance{Used: 4, Limit: schemas.LimitOf(5)}, c.err
}

func (c *counters) ReleaseOnce(ctx context.Context, once usage.Once, change usage.Change) (usage.Balance, error) {
	return c.ConsumeOnce(ctx, once, change)
}

// viewer shows next to nothing.
type viewer struct{}

func (viewer) Workspace(_ context.Context, workspace string) (api.WorkspaceView, error) {
	return api.WorkspaceView{WorkspaceID: workspace}, nil
}

func (viewer) Executions(context.Context, string) ([]api.ExecutionView, error) { return nil, nil }

func (viewer) Check(_ context.Context, _ string, probes []api.Probe) ([]api.ProbeAnswer, error) {
	return make([]api.ProbeAnswer, len(probes)), nil
}

// executor is one whose admissions a test answers.
type executor struct {
	api.Executor

	admit func(ctx context.Context, r enforcement.Request) (schemas.DecisionMade, error)
}

func (e executor) Admit(ctx context.Context, r enforcement.Request) (schemas.DecisionMade, error) {
	return e.admit(ctx, r)
}

// service is an instance of the micro-service at work.
type service struct {
	*house

	stop  context.CancelFunc
	ended chan error
}

// serve offers the micro-service until the test ends or stops it.
func (h *house) serve(set ...func(*api.MicroOptions)) *service {
	h.Helper()
	o := api.MicroOptions{
		NATS: connect(h.TB), Executions: h.Executions, Counters: &counters{}, Reader: viewer{},
		Version: "1.2.3", Log: schematest.Logger(h.TB),
	}
	for _, each := range set {
		each(&o)
	}
	made, err := api.NewMicro(o)
	if err != nil {
		h.Fatal(err)
	}
	h.offered++
	ctx, cancel := context.WithCancel(context.Background())
	s := &service{house: h, stop: cancel, ended: make(chan error, 1)}
	go func() { s.ended <- made.Run(ctx) }()
	h.Cleanup(func() {
		cancel()
		if err := <-s.ended; err != nil {
			h.Errorf("the micro-service ended with an error: %v", err)
		}
	})
	h.eventually("the service answers", func() bool {
		whole := 0
		for _, info := range h.instances() {
			if len(info.Endpoints) == 7 {
				whole++
			}
		}
		return whole == h.offered
	})
	return s
}

// halt stops the instance and waits until it has ended.
func (s *service) halt() {
	s.Helper()
	s.stop()
	err := <-s.ended
	s.ended <- nil
	if err != nil {
		s.Errorf("the micro-service ended with an error: %v", err)
	}
}

// instances are those that answer `nats micro info headroom`.
func (h *house) instances() []micro.Info { return gather[micro.Info](h, "$SRV.INFO.headroom") }

// gather is what several answer, as far as it comes at once.
func gather[T any](h *house, subject string) []T {
	h.Helper()
	inbox := h.nats.NewInbox()
	sub, err := h.nats.SubscribeSync(inbox)
	if err != nil {
		h.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := h.nats.PublishRequest(subject, inbox, nil); err != nil {
		h.Fatal(err)
	}
	var all []T
	for {
		m, err := sub.NextMsg(100 * time.Millisecond)
		if err != nil {
			return all
		}
		var one T
		if len(m.Data) == 0 {
			return all // nobody listens
		}
		if err := json.Unmarshal(m.Data, &one); err != nil {
			h.Fatal(err)
		}
		all = append(all, one)
	}
}

// answered is an answer of the service, or its error.
type answered struct {
	*nats.Msg

	code string
}

// request asks as a client does.
func (h *house) request(endpoint, body string, header ...nats.Header) answered {
	h.Helper()
	m := &nats.Msg{Subject: "headroom.api." + endpoint, Data: []byte(body), Header: nats.Header{}}
	if len(header) > 0 {
		m.Header = header[0]
	}
	got, err := h.nats.RequestMsg(m, patience)
	if err != nil {
		h.Fatalf("%s %s: %v", endpoint, body, err)
	}
	return answered{Msg: got, code: got.Header.Get(micro.ErrorCodeHeader)}
}

// read decodes an answer.
func read[T any](t testing.TB, a answered) (v T) {
	t.Helper()
	if err := json.Unmarshal(a.Data, &v); err != nil {
		t.Fatalf("read %s: %v", a.Data, err)
	}
	return v
}
