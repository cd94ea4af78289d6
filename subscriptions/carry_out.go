package subscriptions

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// step is a transition of one subscription to be carried out. The moment's policy
// and next id are filled in.
type step struct {
	workspace lockedWorkspace
	moment    Moment
	cause     string
	// assigned makes the subscription the one that counts, pinned if need be, and
	// has caches read again even where nothing is new: a person asked for it.
	assigned bool
}

// carryOut writes all that a transition changes into the transaction: the rows and
// their audit trail, which subscription counts, the workspace's revision, and the
// events that tell it. It returns the subscription's newest row.
func (s *Store) carryOut(ctx context.Context, tx pgx.Tx, step step) (Subscription, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Subscription{}, fmt.Errorf("make a subscription id: %w", err)
	}
	step.moment.NextID, step.moment.Policy = id.String(), s.options.Policy
	if step.moment.Terms, err = withOverrides(ctx, tx, step); err != nil {
		return Subscription{}, err
	}
	action := Transition(step.moment)
	if action.UnknownStatus != "" {
		s.options.Log.WarnContext(ctx, "subscription has an unknown status, the last known one stays in force",
			"workspace_id", step.workspace.id, "source_id", step.moment.Says.Key.SourceID, "status", action.UnknownStatus)
	}
	if action.Row, err = writeRows(ctx, tx, action, step.cause); err != nil {
		return Subscription{}, err
	}
	next, err := s.elect(ctx, tx, step, action)
	if err != nil {
		return Subscription{}, err
	}
	if step.noticed(action, next.active) {
		next.revision++
		if err := writeWorkspace(ctx, tx, next); err != nil {
			return Subscription{}, err
		}
	}
	return action.Row, tell(ctx, tx, action, notice{workspace: next, invalidated: next.revision > step.workspace.revision, assigned: step.assigned})
}

// noticed reports whether what a cache holds of the workspace is old now. A
// workspace that is new has no revision yet, and is noticed for being known.
func (s step) noticed(action Action, active string) bool {
	written := action.Verb != VerbNone && action.Verb != VerbStale
	return s.assigned || s.workspace.revision == 0 || active != s.workspace.active || written && action.Row.ID == active
}

func writeRows(ctx context.Context, tx pgx.Tx, action Action, cause string) (Subscription, error) {
	switch action.Verb {
	case VerbInsert:
		return insertSubscription(ctx, tx, action.Row)
	case VerbRoll:
		if err := amend(ctx, tx, *action.Closes, nil, cause); err != nil {
			return Subscription{}, err
		}
		return insertSubscription(ctx, tx, action.Row)
	case VerbAmend, VerbClose:
		return action.Row, amend(ctx, tx, action.Row, action.Changes, cause)
	default:
		return action.Row, nil
	}
}

// elect is the workspace with the subscription that counts from now on.
func (s *Store) elect(ctx context.Context, tx pgx.Tx, step step, action Action) (lockedWorkspace, error) {
	open, err := openPeriods(ctx, tx, step.workspace.id)
	if err != nil {
		return lockedWorkspace{}, err
	}
	next := step.workspace
	election := Election{
		Open: open, Action: action, Active: next.active, Pinned: next.pinned,
		Policy: s.options.Policy, Now: step.moment.Now,
	}
	if step.assigned {
		election, next.pinned = election.assigned()
	}
	next.active = election.Winner()
	if live := election.Live(); live > 1 && next.active != step.workspace.active {
		s.options.Log.WarnContext(ctx, "workspace has several live subscriptions",
			"workspace_id", next.id, "live", live, "active_subscription_id", next.active)
	}
	return next, nil
}

func scanCandidate(row pgx.CollectableRow) (Candidate, error) {
	var (
		c   Candidate
		err error
	)
	c.Subscription, err = scanSubscriptionAnd(row, &c.Rank)
	return c, err
}

func openPeriods(ctx context.Context, tx pgx.Tx, workspace string) ([]Candidate, error) {
	rows, err := tx.Query(ctx, `SELECT `+subscriptionColumns+`,
			(SELECT rank FROM plan_revisions p WHERE p.plan_key = s.plan_key AND p.revision = s.plan_revision)
		FROM subscriptions s WHERE workspace_id = @workspace AND closed_at IS NULL`, pgx.NamedArgs{"workspace": workspace})
	if err != nil {
		return nil, fmt.Errorf("read open periods: %w", err)
	}
	open, err := pgx.CollectRows(rows, scanCandidate)
	if err != nil {
		return nil, fmt.Errorf("read open periods: %w", err)
	}
	return open, nil
}

func writeWorkspace(ctx context.Context, tx pgx.Tx, w lockedWorkspace) error {
	var pinned SubscriptionKey
	if w.pinned != nil {
		pinned = *w.pinned
	}
	_, err := tx.Exec(ctx, `UPDATE workspaces SET active_subscription_id = nullif(@active, '')::uuid, revision = @revision,
			pinned_source = CASE WHEN @pinned THEN @source END, pinned_account = CASE WHEN @pinned THEN @account END,
			pinned_livemode = CASE WHEN @pinned THEN @livemode::boolean END, pinned_source_id = CASE WHEN @pinned THEN @source_id END,
			updated_at = now()
		WHERE id = @id`, pgx.NamedArgs{
		"id": w.id, "active": w.active, "revision": w.revision, "pinned": w.pinned != nil,
		"source": pinned.Source, "account": pinned.Account, "livemode": pinned.Livemode, "source_id": pinned.SourceID,
	})
	if err != nil {
		return fmt.Errorf("point workspace to subscription %s: %w", w.active, err)
	}
	return nil
}
