package subscriptions

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const (
	// dueBatch is how many workspaces are looked up at a time.
	dueBatch = 500
	// maxApplyFaults is how many workspaces may fail before the rest is left.
	maxApplyFaults = 10
)

// AppliedToRunning is what ApplyToRunning did.
type AppliedToRunning struct {
	// Workspaces and Periods count what was amended.
	Workspaces int `json:"workspaces"`
	Periods    int `json:"periods"`
}

// ApplyToRunning gives every open period whose plan has a newer revision the terms
// of the newest one: amended in place, with what was used, the overrides kept, an
// entry in the audit trail, and the workspace's caches told. A plan that left the
// catalog keeps its last terms. Each workspace is one transaction, and the call
// returns after the last commit.
//
// A period that has the newest terms is not due. So a call that was cut short, or
// killed, is finished by another one, and two at once share the work. Progress,
// unless nil, is called after each workspace with how many of those that were due
// at the start are done. A workspace that fails does not keep the others waiting,
// up to ten of them; the error joins their faults. What was done is in the result
// beside it, and stays.
func (s *Store) ApplyToRunning(ctx context.Context, progress func(done, total int)) (AppliedToRunning, error) {
	var applied AppliedToRunning
	total, err := s.countOutdated(ctx)
	if err != nil {
		return applied, fmt.Errorf("apply to running periods: %w", err)
	}
	var faults []error
	done, last := 0, ""
	for {
		workspaces, err := s.outdatedAfter(ctx, last)
		if err != nil {
			return applied, errors.Join(append(faults, fmt.Errorf("apply to running periods: %w", err))...)
		}
		for _, workspace := range workspaces {
			periods, err := s.applyToRunning(ctx, workspace)
			if err != nil {
				faults = append(faults, fmt.Errorf("apply to running periods of workspace %s: %w", workspace, err))
				if ctx.Err() != nil || len(faults) == maxApplyFaults {
					return applied, errors.Join(faults...)
				}
			}
			applied.add(periods)
			done++
			if progress != nil {
				progress(done, max(total, done))
			}
		}
		if len(workspaces) < dueBatch {
			return applied, errors.Join(faults...)
		}
		last = workspaces[len(workspaces)-1]
	}
}

func (a *AppliedToRunning) add(periods int) {
	if periods > 0 {
		a.Workspaces++
		a.Periods += periods
	}
}

// newestRevisions is each plan's newest revision, unless the plan left the catalog.
const newestRevisions = `(SELECT DISTINCT ON (plan_key) plan_key, revision, removed FROM plan_revisions
		ORDER BY plan_key, revision DESC) AS newest`

// fromOutdated are the open periods below their plan's newest revision.
const fromOutdated = ` FROM ` + newestRevisions + `
	JOIN subscriptions s ON s.plan_key = newest.plan_key AND s.plan_revision < newest.revision AND s.closed_at IS NULL
	WHERE NOT newest.removed`

func (s *Store) countOutdated(ctx context.Context) (int, error) {
	rows, err := s.pool.Query(ctx, `SELECT count(DISTINCT s.workspace_id)`+fromOutdated)
	if err != nil {
		return 0, fmt.Errorf("count periods with older terms: %w", err)
	}
	n, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
	if err != nil {
		return 0, fmt.Errorf("count periods with older terms: %w", err)
	}
	return n, nil
}

func (s *Store) outdatedAfter(ctx context.Context, workspace string) ([]string, error) {
	rows, err := s.pool.Query(ctx, `SELECT DISTINCT s.workspace_id`+fromOutdated+` AND s.workspace_id > @after
		ORDER BY s.workspace_id LIMIT @limit`, pgx.NamedArgs{"after": workspace, "limit": dueBatch})
	if err != nil {
		return nil, fmt.Errorf("look for periods with older terms: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("look for periods with older terms: %w", err)
	}
	return found, nil
}

// applyToRunning amends what is still due once the workspace is locked, and tells
// nobody if nothing is.
func (s *Store) applyToRunning(ctx context.Context, workspace string) (periods int, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		locked, err := lockWorkspace(ctx, tx, workspace)
		if err != nil {
			return err
		}
		o, err := s.retake(ctx, tx, retaking{
			workspace: locked, newest: true, cause: "plans apply --to-running", why: "catalog applied to running periods",
		})
		if err != nil || len(o.actions) == 0 {
			return err
		}
		periods = len(o.actions)
		_, err = s.settle(ctx, tx, o)
		return err
	})
	if err != nil {
		return 0, err
	}
	return periods, nil
}
