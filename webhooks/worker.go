package webhooks

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/headroomhq/headroom/subscriptions"
)

// The defaults of WorkerOptions.
const (
	DefaultWorkers     = 4
	DefaultWorkerPause = 500 * time.Millisecond
)

const (
	// glance is how often the database is asked for what is due: deliveries to
	// another process wake nobody here.
	glance = time.Second
	// lease is how long a look-up is one process's own. It is the time after
	// which the look-ups of a process that was killed are begun by others.
	lease = 10 * time.Second
	// lookupPatience bounds one look-up, below the lease.
	lookupPatience = 8 * time.Second
)

// WorkerOptions are what a Worker is made of. Ledger and Store are needed.
type WorkerOptions struct {
	Ledger *Ledger
	Store  *subscriptions.Store
	// API is asked for objects as they are; nil folds what was delivered instead.
	API *API
	// Workers is how many subscriptions are looked up at once, DefaultWorkers if 0.
	Workers int
	// Pause is what follows a first failure, and doubles with each;
	// DefaultWorkerPause if 0.
	Pause time.Duration
	// Log hears of what an operator should know; nil is silence.
	Log *slog.Logger
	// Now is time.Now unless set.
	Now func() time.Time
}

// Worker looks up what the ledger was asked for, and writes what it finds. Any number
// of processes may run one.
//
//	      stripe_sync_requests                    stripe_events without a subscription
//	             │ due: generation g, not synced         │ a charge, a dispute, a customer
//	             ▼ claimed for 10 s                      ▼
//	fetch from the API, or fold the payloads      which subscriptions? ask for them
//	             │ whose is it? on what plan? paid?
//	             ▼ one transaction
//	rows, pointer, news ─ mapping ─ events settled ─ synced_generation = g where lower
//
// What fails is tried again, later each time. A rate limit or an outage gives nothing
// up; what cannot be understood is parked, and a fault of Headroom's own is dead after
// several tries, each with its reason.
type Worker struct {
	options WorkerOptions
	ledger  *Ledger
	store   *subscriptions.Store
	api     *API
	log     *slog.Logger
	now     func() time.Time
	catalog *catalog
	tally   workerTally
	// considered is one more than the catalog that unresolved subscriptions were held against.
	considered atomic.Int64
	// more wakes workers that rest, because there is more than one can do.
	more  chan struct{}
	news  *versions
	probe probe
	// lease is the constant but in a test.
	lease time.Duration
}

// NewWorker makes a Worker. It does not talk to anybody yet.
func NewWorker(o WorkerOptions) *Worker {
	if o.Workers <= 0 {
		o.Workers = DefaultWorkers
	}
	if o.Pause <= 0 {
		o.Pause = DefaultWorkerPause
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Worker{
		options: o, ledger: o.Ledger, store: o.Store, api: o.API, log: o.Log, now: o.Now,
		catalog: &catalog{store: o.Store}, more: make(chan struct{}, o.Workers),
		news: &versions{log: o.Log}, probe: unwatched{}, lease: lease,
	}
}

// Run works until ctx ends, and then returns nil; what is under way by then is left for
// another run. While Postgres is away it tries again with growing pauses.
func (w *Worker) Run(ctx context.Context) error {
	woken := make(chan struct{}, 1)
	var all errgroup.Group
	all.Go(func() error { return w.listen(ctx, woken) })
	all.Go(func() error { return w.lead(ctx, woken) })
	for range w.options.Workers - 1 {
		all.Go(func() error { return w.assist(ctx) })
	}
	return all.Wait()
}

// lead looks for what is due whenever it is woken, and once a glance.
func (w *Worker) lead(ctx context.Context, woken <-chan struct{}) error {
	for failures := 0; ctx.Err() == nil; {
		err := w.reconsider(ctx)
		if err == nil {
			err = w.drain(ctx)
		}
		pause := glance
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			failures++
			pause = min(glance<<min(failures, 3), 5*time.Second)
			if failures == 1 {
				w.log.WarnContext(ctx, "look-ups of subscriptions wait for the database", "error", err)
			}
		case failures > 0:
			failures = 0
			w.log.InfoContext(ctx, "subscriptions are looked up again")
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-woken:
		case <-w.ledger.woken:
		}
		timer.Stop()
	}
	return nil
}

// assist works whenever there is more than the leading worker can do.
func (w *Worker) assist(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.more:
			// The leading worker meets the same fault.
			_ = w.each(ctx, w.oneLookup)
		}
	}
}

// drain works until nothing is due. An error is one of the database.
func (w *Worker) drain(ctx context.Context) error {
	if err := w.each(ctx, w.oneObject); err != nil {
		return err
	}
	return w.each(ctx, w.oneLookup)
}

func (w *Worker) each(ctx context.Context, one func(context.Context) (bool, error)) error {
	for ctx.Err() == nil {
		if did, err := one(ctx); err != nil || !did {
			return err
		}
		select {
		case w.more <- struct{}{}:
		default: // they are at it
		}
	}
	return nil
}
