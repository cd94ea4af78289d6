package subscriptions

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// step is a transition of one subscription to be carried out.
type step struct {
	workspace lockedWorkspace
	moment    Moment
	cause     string
	// assigned makes the subscription the one that counts, pinned if need be, and
	// has caches read again even where nothing is new: a person asked for it.
	assigned bool
}

// outcome is what was done to a workspace's subscriptions in one transaction, before
// it is settled which one counts.
type outcome struct {
	workspace lockedWorkspace
	now       time.Time
	actions   []Action
	// untouched are open rows of which nothing was written.
	untouched []Subscription
	// open are the open periods after the actions, if they are known.
	open      []Candidate
	openKnown bool
	assigned  bool
	// why has caches read again in any case, and says why.
	why string
	// ranked is set where a plan's rank is another one now, so that another
	// subscription may win.
	ranked bool
}

// add notes what became of one of the open periods.
func (o *outcome) add(c Candidate, action Action) {
	if action.written() {
		o.actions = append(o.actions, action)
	} else {
		o.untouched = append(o.untouched, action.Row)
	}
	if action.Row.ClosedAt != nil {
		return
	}
	if action.Row.PlanRevision != c.PlanRevision || action.Row.PlanKey != c.PlanKey {
		o.openKnown = false // it may have another rank now
	}
	o.open = append(o.open, Candidate{Subscription: action.Row, Rank: c.Rank})
}

// carryOut writes all that a transition changes into the transaction: the rows and
// their audit trail, which subscription counts, the workspace's revision, and the
// events that tell it. It returns the subscription's newest row.
func (s *Store) carryOut(ctx context.Context, tx pgx.Tx, step step) (Subscription, error) {
	all, err := overridesOf(ctx, tx, step.workspace.id)
	if err != nil {
		return Subscription{}, err
	}
	action, err := s.act(ctx, tx, step.moment.with(all), step.cause)
	if err != nil {
		return Subscription{}, err
	}
	o := outcome{workspace: step.workspace, now: step.moment.Now, actions: []Action{action}, assigned: step.assigned}
	_, err = s.settle(ctx, tx, o)
	return action.Row, err
}

// act finds out the action of a moment, whose terms have the workspace's overrides,
// and writes its rows. The moment's policy and next id are filled in.
func (s *Store) act(ctx context.Context, tx pgx.Tx, m Moment, cause string) (Action, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Action{}, fmt.Errorf("make a subscription id: %w", err)
	}
	m.NextID, m.Policy = id.String(), s.options.Policy
	action := Transition(m)
	if action.UnknownStatus != "" {
		s.options.Log.WarnContext(ctx, "subscription has an unknown status, the last known one stays in force",
			"workspace_id", m.Says.WorkspaceID, "source_id", m.Says.Key.SourceID, "status", action.UnknownStatus)
	}
	action.Row, err = writeRows(ctx, tx, action, cause)
	return action, err
}

// settle finds which subscription counts after the actions, and writes and tells it.
func (s *Store) settle(ctx context.Context, tx pgx.Tx, o outcome) (lockedWorkspace, error) {
	if !o.openKnown {
		var err error
		if o.open, err = openPeriods(ctx, tx, o.workspace.id); err != nil {
			return lockedWorkspace{}, err
		}
	}
	next := s.elect(ctx, o)
	batch := &pgx.Batch{}
	if o.noticed(next.active) {
		next.revision++
		writeWorkspace(batch, next)
	}
	if err := o.tell(batch, next); err != nil {
		return lockedWorkspace{}, err
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return lockedWorkspace{}, fmt.Errorf("point workspace to subscription %q and tell it: %w", next.active, err)
	}
	return next, nil
}

// noticed reports whether what a cache holds of the workspace is old now. A
// workspace that is new has no revision yet, and is noticed for being known.
func (o outcome) noticed(active string) bool {
	if o.assigned || o.why != "" || o.workspace.revision == 0 || active != o.workspace.active {
		return true
	}
	return slices.ContainsFunc(o.actions, func(a Action) bool { return a.concerns(active) })
}

// written reports whether the action changes a row.
func (a Action) written() bool { return a.Verb != VerbNone && a.Verb != VerbStale }

// concerns reports whether the plan of a workspace on the row reads otherwise now. It
// does so too when a period is amended for which the row stands in.
func (a Action) concerns(active string) bool {
	switch {
	case !a.written() || len(a.Changes) == 1 && a.Changes[0].Field == fieldOverdueSince:
		return false
	case a.Row.ID == active:
		return true
	default:
		return a.Verb == VerbAmend && a.Row.PreviousID != nil && *a.Row.PreviousID == active
	}
}

func writeRows(ctx context.Context, tx pgx.Tx, action Action, cause string) (Subscription, error) {
	batch, row := &pgx.Batch{}, action.Row
	switch action.Verb {
	case VerbInsert:
		insertSubscription(batch, &row)
	case VerbRoll:
		amend(batch, *action.Closes, nil, cause)
		insertSubscription(batch, &row)
	case VerbAmend, VerbClose:
		amend(batch, row, action.Changes, cause)
	default:
		return row, nil
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return Subscription{}, fmt.Errorf("%s of period %s: %w", action.Verb, row.ID, err)
	}
	return row, nil
}

// elect is the workspace with the subscription that counts from now on.
func (s *Store) elect(ctx context.Context, o outcome) lockedWorkspace {
	next := o.workspace
	election := Election{
		Open: o.open, Action: o.decisive(), Active: next.active, Pinned: next.pinned,
		Policy: s.options.Policy, Now: o.now,
	}
	if o.assigned {
		election, next.pinned = election.assigned()
	}
	next.active = election.Winner()
	if live := election.Live(); live > 1 && next.active != o.workspace.active {
		s.options.Log.WarnContext(ctx, "workspace has several live subscriptions",
			"workspace_id", next.id, "live", live, "active_subscription_id", next.active)
	}
	return next
}

// decisive is the action that the election is held after: of several the one that
// renews what counts, so that the workspace follows it. Other ranks are as if one came.
// Without any it is held all the same: a grace may be over.
func (o outcome) decisive() Action {
	for _, a := range o.actions {
		if a.Verb == VerbRoll && a.Closes.ID == o.workspace.active {
			return a
		}
	}
	switch n := len(o.actions); {
	case o.ranked:
		return Action{Verb: VerbInsert}
	case n > 0:
		return o.actions[n-1]
	default:
		return Action{Verb: VerbNone}
	}
}

func scanCandidate(row pgx.CollectableRow) (Candidate, error) {
	var (
		c         Candidate
		overrides []overrideRow
		err       error
	)
	c.Subscription, err = scanSubscriptionAnd(row, &c.Rank, &overrides)
	c.overrides = overridesFrom(overrides)
	return c, err
}

func openPeriods(ctx context.Context, tx pgx.Tx, workspace string) ([]Candidate, error) {
	rows, err := tx.Query(ctx, `SELECT `+subscriptionColumns+`,
			(SELECT rank FROM plan_revisions p WHERE p.plan_key = s.plan_key AND p.revision = s.plan_revision),
			(SELECT jsonb_agg(o ORDER BY o.field COLLATE "C") FROM plan_overrides o WHERE o.workspace_id = s.workspace_id)
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

func writeWorkspace(batch *pgx.Batch, w lockedWorkspace) {
	var pinned SubscriptionKey
	if w.pinned != nil {
		pinned = *w.pinned
	}
	batch.Queue(`UPDATE workspaces SET active_subscription_id = nullif(@active, '')::uuid, revision = @revision,
			pinned_source = CASE WHEN @pinned THEN @source END, pinned_account = CASE WHEN @pinned THEN @account END,
			pinned_livemode = CASE WHEN @pinned THEN @livemode::boolean END, pinned_source_id = CASE WHEN @pinned THEN @source_id END,
			updated_at = now()
		WHERE id = @id`, pgx.NamedArgs{
		"id": w.id, "active": w.active, "revision": w.revision, "pinned": w.pinned != nil,
		"source": pinned.Source, "account": pinned.Account, "livemode": pinned.Livemode, "source_id": pinned.SourceID,
	})
}
