package race

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/enforcement/guard"
	"github.com/headroomhq/headroom/enforcement/usage"
)

// The ways, by their names.
const (
	CheckThenInsert = "check_then_insert"
	GuardProcess    = "guard_process"
	GuardPostgres   = "guard_postgres"
	Consume         = "usage_consume"
)

// Options say how large the race is.
type Options struct {
	// PostgresURL is an empty database that the race may fill.
	PostgresURL string
	// Limit is how many projects are allowed, 1 or more. One fewer exist at the start.
	Limit int64
	// Requests is how many want one more at once, 1 or more.
	Requests int
	// Work is what a request does besides, in its transaction, between check and insert. By
	// default it is a query of about a millisecond.
	Work func(ctx context.Context, tx pgx.Tx) error
}

// Result is what became of one way.
type Result struct {
	Way string `json:"way"`
	// Protected says that the way promises to stay within the limit.
	Protected bool `json:"protected"`
	Requests  int  `json:"requests"`
	Succeeded int  `json:"succeeded"`
	Refused   int  `json:"refused"`
	// Projects are in the table at the end, OverBy as many beyond the limit.
	Projects int64 `json:"projects"`
	OverBy   int64 `json:"over_by"`
	// Took is from the first request to the last answer.
	Took time.Duration `json:"took_ns"`
	// Why is the reason in a sentence.
	Why string `json:"why"`
}

// Race is a database with a limit, and what the ways need. Close it.
type Race struct {
	options Options
	// pools are two, as two processes would have them: a request uses the one of its number.
	pools    [2]*pgxpool.Pool
	process  *guard.Client[pgx.Tx]
	postgres [2]*guard.Client[pgx.Tx]
	counters *usage.Counters
}

func (r *Race) pool(request int) *pgxpool.Pool { return r.pools[request%len(r.pools)] }

// way is one way to keep to a limit.
type way struct {
	name      string
	protected bool
	add       func(ctx context.Context, workspace string, request int) error
	why       string
}

func (r *Race) ways() []way {
	return []way{
		{
			CheckThenInsert, false, r.checkThenInsert,
			"Each request counted before the others had inserted, so each found room.",
		},
		{
			GuardProcess, true, func(ctx context.Context, workspace string, _ int) error {
				return r.guarded(ctx, workspace, r.process)
			},
			"Count and insert run one request at a time, but only in this process: a second instance would have a lock of its own.",
		},
		{GuardPostgres, true, func(ctx context.Context, workspace string, request int) error {
			return r.guarded(ctx, workspace, r.postgres[request%len(r.postgres)])
		}, "Count and insert run one request at a time in the whole database, here from two pools as two instances have them."},
		{
			Consume, true, r.consume,
			"One UPDATE checks and counts in the insert's own transaction, and a rollback gives the unit back.",
		},
	}
}

// Play runs the named ways, or all of them, one after the other. Each is run twice, in
// a workspace of its own: first with nobody watching, so that neither a connection that is
// opened nor a statement that is prepared counts as the time that a way takes.
//
// An error is a request that failed for another reason than the limit. That a way went
// over the limit is in its result.
func (r *Race) Play(ctx context.Context, names ...string) ([]Result, error) {
	var results []Result
	for _, w := range r.ways() {
		if len(names) > 0 && !slices.Contains(names, w.name) {
			continue
		}
		var result Result
		for _, workspace := range []string{"warm_up_" + w.name, w.name} {
			if err := r.seed(ctx, workspace); err != nil {
				return nil, err
			}
			var err error
			if result, err = r.play(ctx, w, workspace); err != nil {
				return nil, fmt.Errorf("play %s: %w", w.name, err)
			}
		}
		results = append(results, result)
	}
	return results, nil
}

func (r *Race) play(ctx context.Context, w way, workspace string) (Result, error) {
	answers := make([]error, r.options.Requests)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			<-start
			answers[i] = w.add(ctx, workspace, i)
		})
	}
	began := time.Now()
	close(start)
	all.Wait()
	result := Result{Way: w.name, Protected: w.protected, Requests: len(answers), Took: time.Since(began), Why: w.why}
	for _, err := range answers {
		switch {
		case err == nil:
			result.Succeeded++
		case errors.Is(err, errRefused):
			result.Refused++
		default:
			return Result{}, err
		}
	}
	err := pgx.BeginFunc(ctx, r.pools[0], func(tx pgx.Tx) error {
		var err error
		result.Projects, err = count(ctx, tx, workspace)
		return err
	})
	result.OverBy = max(result.Projects-r.options.Limit, 0)
	return result, err
}

// Broken is nil when every protected way ended with exactly the limit.
func Broken(results []Result, limit int64) error {
	var faults []error
	for _, result := range results {
		if result.Protected && (result.Projects != limit || result.Succeeded != 1) {
			faults = append(faults, fmt.Errorf("%s: %d requests succeeded, and there are %d projects where %d are allowed",
				result.Way, result.Succeeded, result.Projects, limit))
		}
	}
	return errors.Join(faults...)
}
