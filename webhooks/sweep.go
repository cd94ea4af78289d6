package webhooks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// The defaults of SweepOptions.
const (
	DefaultSweepInterval = 5 * time.Minute
	DefaultSweepOverlap  = 15 * time.Minute
	DefaultSweepYoung    = 2 * time.Minute
)

// kept is how long Stripe keeps events, less what a sweep may take.
const kept = 30*24*time.Hour - time.Hour

// SweepOptions are what a Sweep is made of. Ledger and API are needed.
type SweepOptions struct {
	Ledger *Ledger
	API    *API
	// Interval is how often Run sweeps, DefaultSweepInterval if 0.
	Interval time.Duration
	// Overlap is how far before the end of the last sweep the next one begins, for what
	// Stripe lists late and clocks that differ; DefaultSweepOverlap if 0.
	Overlap time.Duration
	// Young is how long an event may be on its way before it counts as missing;
	// DefaultSweepYoung if 0, below 0 not at all.
	Young time.Duration
	// Log hears of each repair; nil is silence.
	Log *slog.Logger
	// Now is time.Now unless set.
	Now func() time.Time
}

// Sweep compares the events that Stripe has with those on record, and records what was
// never delivered, as if it had been:
//
//	GET /v1/events  created since the last sweep, less an overlap
//	    │           of each account, in windows of six hours, the oldest first
//	    ├─ on record ─────────► nothing
//	    └─ not on record ─────► recorded, counted as a repair, looked up
//
// How far it has come is in Postgres: a sweep that is interrupted goes on there, and of
// any number of processes one sweeps. Stripe keeps events for 30 days; a longer gap is
// told of, and asks for a Sync.
type Sweep struct {
	options SweepOptions
	ledger  *Ledger
	pages   pages
	log     *slog.Logger
	now     func() time.Time
	repairs atomic.Int64
	failed  atomic.Int64
}

// NewSweep makes a Sweep. It does not talk to anybody yet.
func NewSweep(o SweepOptions) *Sweep {
	if o.Interval <= 0 {
		o.Interval = DefaultSweepInterval
	}
	if o.Overlap <= 0 {
		o.Overlap = DefaultSweepOverlap
	}
	if o.Young == 0 {
		o.Young = DefaultSweepYoung
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Sweep{options: o, ledger: o.Ledger, pages: pages{o.API, listPause, o.Log}, log: o.Log, now: o.Now}
}

// SweepStats are what Run has done so far.
type SweepStats struct {
	// Repairs are the events that were never delivered: none is the proof that delivery
	// works. Failed are sweeps that ended with an error; the next one goes on.
	Repairs, Failed int64
}

// Stats are what was done so far.
func (s *Sweep) Stats() SweepStats {
	return SweepStats{Repairs: s.repairs.Load(), Failed: s.failed.Load()}
}

// SweepReport is what one sweep came to.
type SweepReport struct {
	// Since is where it began, of several accounts the earliest.
	Since time.Time `json:"since"`
	// Listed are the events of the types that an endpoint is to be sent, Young those of
	// them that may still be on their way, and Repaired, by type, those that were
	// recorded now.
	Listed   int            `json:"listed"`
	Young    int            `json:"young"`
	Repaired map[string]int `json:"repaired"`
	// Lost says for which accounts the gap was longer than Stripe keeps events.
	Lost []string `json:"lost"`
}

// Repairs is how many events were recorded.
func (r SweepReport) Repairs() int {
	n := 0
	for _, count := range r.Repaired {
		n += count
	}
	return n
}

// Run sweeps at once and then each interval, until ctx ends, and returns nil. What fails
// is logged and done by the next sweep.
func (s *Sweep) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		report, err := s.sweep(ctx, s.options.Interval/2)
		switch {
		case err == nil, errors.Is(err, ErrBusy):
		case ctx.Err() == nil:
			s.failed.Add(1)
			s.log.WarnContext(ctx, "sweep of stripe's events failed and is tried again", "error", err, "again_in", s.options.Interval)
		}
		if n := report.Repairs(); n > 0 {
			s.log.WarnContext(ctx, "stripe's events were never delivered: the sweep recorded them", "events", n, "types", report.Repaired)
		}
		rest(ctx, s.options.Interval)
	}
	return nil
}

// Once sweeps now. ErrBusy means that another process sweeps. The report says what was
// done, with an error too.
func (s *Sweep) Once(ctx context.Context) (SweepReport, error) { return s.sweep(ctx, 0) }

// sweep sweeps all accounts whose last sweep is so long ago. One that fails keeps no
// other from being swept.
func (s *Sweep) sweep(ctx context.Context, ago time.Duration) (SweepReport, error) {
	report := SweepReport{Repaired: map[string]int{}}
	err := s.ledger.alone(ctx, sweepLock, func(ctx context.Context) error {
		worlds, err := s.ledger.worlds(ctx, s.pages.api, nil)
		if err != nil {
			return err
		}
		var faults []error
		for _, w := range worlds {
			if err := s.sweepWorld(ctx, w, ago, &report); err != nil {
				faults = append(faults, fmt.Errorf("sweep %s: %w", w, err))
			}
		}
		return errors.Join(faults...)
	})
	return report, err
}
