package subscriptions

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/schemas"
)

// retaking is how the open periods of a locked workspace come to other terms.
type retaking struct {
	workspace lockedWorkspace
	// newest takes the newest revision of each row's plan, unless the plan left the
	// catalog; otherwise a row keeps its revision, and only overrides change.
	newest bool
	cause  string
}

// retaken is what came of it.
type retaken struct {
	// periods is how many rows were amended.
	periods int
	// ranked is whether one of them has another rank now, so that another
	// subscription may win.
	ranked bool
}

// retake amends each open period whose terms are not what they should be: the
// plan's, with the overrides that hold now. What was used stands.
func retake(ctx context.Context, tx pgx.Tx, r retaking) (retaken, error) {
	var done retaken
	all, err := overridesOf(ctx, tx, r.workspace.id)
	if err != nil {
		return done, err
	}
	open, err := openPeriods(ctx, tx, r.workspace.id)
	if err != nil {
		return done, err
	}
	for _, row := range open {
		terms, rank := row.Snapshot, row.Rank
		if r.newest {
			latest, err := latestPlan(ctx, tx, row.PlanKey)
			if err != nil {
				return done, err
			}
			if latest != nil && !latest.Removed {
				terms, rank = snapshotOf(*latest), int(latest.Rank)
			}
		}
		to := row.Subscription
		to.setTerms(terms.with(liveOverrides(all, r.workspace.now)))
		changes := diffText(subscriptionText(row.Subscription), subscriptionText(to))
		if len(changes) == 0 {
			continue
		}
		if err := amend(ctx, tx, to, changes, r.cause); err != nil {
			return done, err
		}
		done.periods++
		done.ranked = done.ranked || rank != row.Rank
	}
	return done, nil
}

// announcement is what is told of a workspace whose terms are other ones.
type announcement struct {
	workspace lockedWorkspace
	// contested looks for the subscription that wins, as when one came or changed;
	// otherwise the workspace stays where it is as long as that is live.
	contested bool
	reason    string
}

// announce raises the workspace's revision, finds which subscription counts, and
// puts into the outbox that whatever is cached is old. It returns the revision.
func (s *Store) announce(ctx context.Context, tx pgx.Tx, a announcement) (int64, error) {
	verb := VerbNone
	if a.contested {
		verb = VerbInsert
	}
	next, err := s.elect(ctx, tx, step{workspace: a.workspace, moment: Moment{Now: a.workspace.now}}, Action{Verb: verb})
	if err != nil {
		return 0, err
	}
	next.revision++
	if err := writeWorkspace(ctx, tx, next); err != nil {
		return 0, err
	}
	err = enqueue(ctx, tx, next.id, NewsInvalidated, schemas.PlanInvalidated{
		WorkspaceID: next.id, PlanRevision: next.revision, Reason: a.reason,
	})
	if err != nil {
		return 0, fmt.Errorf("tell of workspace %s: %w", next.id, err)
	}
	return next.revision, nil
}
