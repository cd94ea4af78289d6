package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/headroomhq/headroom/schemas"
)

const (
	// microName is the service's in `nats micro list`, and its queue group: instances share
	// the requests.
	microName = "headroom"
	// sourceMicro is the CloudEvents source of what is asked here, and the scope of its
	// idempotency keys.
	sourceMicro = "/micro"
	// serviceReply begins the replies that a server makes for a requester in another account.
	serviceReply = "_R_."
)

// MicroOptions makes a Micro. NATS, Executions, Counters and Reader are required; what is
// zero of the rest has the default of its comment.
type MicroOptions struct {
	NATS       *nats.Conn
	Topology   schemas.Topology
	Executions Executor
	Counters   Counting
	Reader     WorkspaceViewer
	// Claims refuse a key of an admission or a completion that comes again with another
	// request; without them it is that request, and what the key was for is not looked at.
	Claims Claims
	// Version is a semantic version: 0.0.0.
	Version string
	// MaxAtOnce is how many requests are served at once; one more is answered 503: 4,096.
	MaxAtOnce int
	// Timeout bounds the work on one request: 10 seconds.
	Timeout time.Duration
	// Log is where to log: nowhere.
	Log *slog.Logger
}

// Micro is the NATS micro-service: request and reply under <prefix>.api, with the bodies of
// HTTP and what stands in its paths beside them. Whoever may publish there may ask for any
// workspace; NATS's permissions say who that is.
//
//	headroom.api.admit ─► read, check ─┬─► goroutine ─► Executions ─► decision
//	            …                      │                 Counters, Reader
//	                                   └─► wrong, or too many at once: service error
//
// A decision that denies, and a consume that is refused for want of room, is an answer like
// any other. A request that is wrong or cannot be served is a service error, whose code is
// the HTTP status and whose body the Problem.
type Micro struct {
	options   MicroOptions
	endpoints []*endpoint
	// slots holds one for each request that is served.
	slots chan struct{}
	// offered is set while the server knows of every endpoint.
	offered atomic.Bool
}

// Ready reports whether requests are answered.
func (m *Micro) Ready() bool { return m.offered.Load() }

// NewMicro makes the service, which answers from Run on. The error is a fault of the
// endpoint table itself.
func NewMicro(o MicroOptions) (*Micro, error) {
	if o.Version == "" {
		o.Version = "0.0.0"
	}
	o.MaxAtOnce = positive(o.MaxAtOnce, 4096)
	o.Timeout = positive(o.Timeout, defaultTimeout)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	endpoints, err := microEndpoints()
	if err != nil {
		return nil, err
	}
	return &Micro{options: o, endpoints: endpoints, slots: make(chan struct{}, o.MaxAtOnce)}, nil
}

// Run answers until ctx ends. Then it takes no more requests and returns when those that
// it took are answered; one that arrives in between is answered 503. Executions, Counters
// and Reader are not used after that.
func (m *Micro) Run(ctx context.Context) error {
	service, err := micro.AddService(m.options.NATS, micro.Config{
		Name: microName, Version: m.options.Version, QueueGroup: microName,
		Description:  "Asks Headroom whether a workspace's plan has room, and waits for the answer.",
		Metadata:     map[string]string{"documentation": "https://github.com/headroomhq/headroom/blob/main/docs/api-nats.md"},
		StatsHandler: m.stats,
	})
	if err != nil {
		return fmt.Errorf("offer the micro-service: %w", err)
	}
	group := service.AddGroup(m.options.Topology.API())
	for _, e := range m.endpoints {
		err := group.AddEndpoint(e.name, m.handler(ctx, e), micro.WithEndpointMetadata(e.metadata()))
		if err != nil {
			return errors.Join(fmt.Errorf("offer %s.%s: %w", m.options.Topology.API(), e.name, err), service.Stop())
		}
	}
	m.confirm(ctx)
	<-ctx.Done()
	m.offered.Store(false)
	err = service.Stop()
	if err != nil && !m.options.NATS.IsClosed() {
		err = fmt.Errorf("stop the micro-service: %w", err)
	} else {
		err = nil
	}
	for range cap(m.slots) {
		m.slots <- struct{}{} // and so nobody else gets one
	}
	return err
}

// confirm returns when the server has answered that it knows of the endpoints, or ctx ends.
func (m *Micro) confirm(ctx context.Context) {
	const patience, pause = time.Second, 50 * time.Millisecond
	again := time.NewTicker(pause)
	defer again.Stop()
	for {
		asking, cancel := context.WithTimeout(ctx, patience)
		err := m.options.NATS.FlushWithContext(asking)
		cancel()
		if err == nil {
			m.offered.Store(true)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}

// stats is what `nats micro stats` shows of an endpoint beside the framework's own counts,
// which end when a request is handed over: its errors are the wrong requests alone.
func (m *Micro) stats(of *micro.Endpoint) any {
	for _, e := range m.endpoints {
		if e.name == of.Name {
			return e.counts.told()
		}
	}
	return nil
}
