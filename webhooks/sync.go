package webhooks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
)

// The defaults of SyncOptions.
const (
	DefaultSyncInterval = 24 * time.Hour
	DefaultSyncRate     = 10
	DefaultSyncPatience = time.Minute
	DefaultSyncYoung    = 2 * time.Minute
)

// syncGlance is how often Run looks whether there is something to do.
const syncGlance = time.Minute

// SyncOptions are what a Sync is made of. Ledger, Store and API are needed.
type SyncOptions struct {
	Ledger *Ledger
	Store  *subscriptions.Store
	API    *API
	// Interval is how often Run compares everything, DefaultSyncInterval if 0.
	Interval time.Duration
	// Rate is how many look-ups a second are asked for, each of which is two calls of the
	// API; DefaultSyncRate if 0, below 0 as many as there are.
	Rate int
	// Patience is how long look-ups may make no progress before the next are asked for;
	// DefaultSyncPatience if 0.
	Patience time.Duration
	// Young is how long Run gives a delivery that may tell of a difference, before it
	// counts as one; DefaultSyncYoung if 0, below 0 not at all.
	Young time.Duration
	// Progress is told after each page of a call of Once; nil is nobody.
	Progress func(SyncProgress)
	// Log hears of each repair; nil is silence.
	Log *slog.Logger
	// Now is time.Now unless set.
	Now func() time.Time
}

// Sync compares the subscriptions that Stripe has with the rows, and asks for a look-up
// of each that differs, so that a Worker has to run in this process or another:
//
//	GET /v1/subscriptions?status=all, every page
//	    │           as the row says ──────────► nothing
//	    ├─ never heard of, or different ──────► looked up
//	    ▼
//	those that are known and were not listed ─► looked up
//	    │           on test clocks, of another key, never read
//	    ▼
//	what the look-ups changed, by cause: none is the proof that nothing was missed
//
// It needs no events, so that it finds what none tells of, and it is the first import of
// those who subscribed before Headroom was there. How far it has come is in Postgres: one
// that is interrupted goes on there, and of any number of processes one syncs.
type Sync struct {
	options SyncOptions
	ledger  *Ledger
	store   *subscriptions.Store
	pages   pages
	catalog *catalog
	log     *slog.Logger
	now     func() time.Time
	tally   syncTally
}

// NewSync makes a Sync. It does not talk to anybody yet.
func NewSync(o SyncOptions) *Sync {
	if o.Interval <= 0 {
		o.Interval = DefaultSyncInterval
	}
	if o.Rate == 0 {
		o.Rate = DefaultSyncRate
	}
	if o.Patience <= 0 {
		o.Patience = DefaultSyncPatience
	}
	if o.Young == 0 {
		o.Young = DefaultSyncYoung
	}
	if o.Progress == nil {
		o.Progress = func(SyncProgress) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	pause := listPause
	if o.Rate < 0 {
		pause = 0
	}
	return &Sync{
		options: o, ledger: o.Ledger, store: o.Store, pages: pages{o.API, pause, o.Log},
		catalog: &catalog{store: o.Store}, log: o.Log, now: o.Now,
	}
}

// Run compares at once where that was never done, or was not finished, and then each
// interval; and it asks soon for subscriptions whose period is over without news. It
// ends when ctx does, and returns nil. What fails is logged and done later.
func (s *Sync) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := s.ledger.alone(ctx, syncLock, s.round)
		if err != nil && !errors.Is(err, ErrBusy) && ctx.Err() == nil {
			s.tally.failed.Add(1)
			s.log.WarnContext(ctx, "comparison with stripe failed and goes on later", "error", err, "again_in", syncGlance)
		}
		rest(ctx, syncGlance)
	}
	return nil
}

// round is what is due now.
func (s *Sync) round(ctx context.Context) error {
	report := newSyncReport()
	faults := []error{s.askOverdue(ctx)}
	worlds, err := s.ledger.worlds(ctx, s.pages.api, nil)
	if err != nil {
		return err
	}
	for _, w := range worlds {
		position, err := s.position(ctx, w)
		if err == nil && position.due(s.now(), s.options.Interval) {
			err = s.syncWorld(ctx, w, s.options.Young, &report)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("compare %s: %w", w, err))
		}
	}
	if n := report.Repairs(); n > 0 {
		s.log.WarnContext(ctx, "subscriptions differed from stripe's: the comparison repaired them", "repaired", report.Repaired)
	}
	return errors.Join(faults...)
}

// Once compares everything now, the named connected accounts too: it goes on where one
// was interrupted. ErrBusy means that another process syncs. The report says what was
// done, with an error too.
func (s *Sync) Once(ctx context.Context, accounts ...string) (SyncReport, error) {
	report := newSyncReport()
	err := s.ledger.alone(ctx, syncLock, func(ctx context.Context) error {
		worlds, err := s.ledger.worlds(ctx, s.pages.api, accounts)
		if err != nil {
			return err
		}
		var faults []error
		for _, w := range worlds {
			if err := s.syncWorld(ctx, w, 0, &report); err != nil {
				faults = append(faults, fmt.Errorf("compare %s: %w", w, err))
			}
		}
		return errors.Join(faults...)
	})
	return report, err
}
