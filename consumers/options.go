package consumers

import (
	"errors"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas"
)

// Enforcer decides; enforcement.Enforcer is one.
type Enforcer interface {
	admitter
	extender
	releaser
	opener
}

// Options makes the consumers. NATS, JetStream and Enforcer are required; what is
// zero of the rest has the default of its comment.
type Options struct {
	// NATS is the connection that JetStream is on. It should be made with
	// nats.ReconnectBufSize(-1): a decision that is kept back while the
	// connection is lost could appear later than the rebuild fence allows.
	NATS      *nats.Conn
	JetStream jetstream.JetStream
	Topology  schemas.Topology
	Enforcer  Enforcer
	// Renewals, unless nil, has subscription.renewed handled: periods are opened, and
	// caches told of what others wrote.
	Renewals Renewals
	// Plans is this process's plan cache, required with Renewals.
	Plans PlanCache
	// Ledger, unless nil, is kept up to date by one of the processes that have it.
	Ledger *ledger.Store
	// Workers is the number of lanes per kind of message: 2.
	Workers int
	// BatchSize is the most messages that are handled together: 512.
	BatchSize int
	// MaxAttempts is how often a message may fail, for no fault of a service, before it
	// is a dead letter: 20.
	MaxAttempts int
	// UnavailableBudget is how long a request is put off while no decision can be
	// taken, before it is denied with 9008: 10 seconds.
	UnavailableBudget time.Duration
	// RebuildFence is how long after it was asked for a decision may still be
	// published, and so how long it is waited for: 2 seconds.
	RebuildFence time.Duration
	// RenewalPatience is how old a subscription.renewed may become while there is no row
	// of its subscription, before it is a dead letter: 10 minutes.
	RenewalPatience time.Duration
	// DrainTimeout is how long work that is under way may go on once Run's context
	// has ended: 20 seconds.
	DrainTimeout time.Duration
	// Shadow publishes every decision as allowed, marked `shadow`. What would have
	// been a denial keeps its code, error and message. Enforcement counts as ever: only
	// what is really allowed takes a slot and a unit.
	Shadow bool
	// Now is the clock: time.Now.
	Now func() time.Time
	// Log is where to log: nowhere.
	Log *slog.Logger
}

func (o Options) withDefaults() (Options, error) {
	if o.NATS == nil || o.JetStream == nil || o.Enforcer == nil {
		return o, errors.New("make consumers: NATS, JetStream and Enforcer are required")
	}
	if o.Renewals != nil && o.Plans == nil {
		return o, errors.New("make consumers: Renewals needs Plans")
	}
	o.Workers = positive(o.Workers, 2)
	o.BatchSize = positive(o.BatchSize, 512)
	o.MaxAttempts = positive(o.MaxAttempts, 20)
	o.UnavailableBudget = positive(o.UnavailableBudget, 10*time.Second)
	o.RebuildFence = positive(o.RebuildFence, 2*time.Second)
	o.RenewalPatience = positive(o.RenewalPatience, 10*time.Minute)
	o.DrainTimeout = positive(o.DrainTimeout, 20*time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

func positive[N int | time.Duration](n, otherwise N) N {
	if n > 0 {
		return n
	}
	return otherwise
}
