package usage

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/subscriptions"
)

const (
	// staleAttempts bounds how often a plan is read again because the database has a
	// newer one.
	staleAttempts = 3
	// raceAttempts bounds how often a change is tried on one reading. The first try that
	// is overtaken leaves the counter's row locked, so the second one decides.
	raceAttempts = 3
)

// Consume adds units to a counter in the caller's transaction: they count from its
// commit, and a rollback gives them back. It is one statement, which checks and
// writes, and a second one where a threshold is reached.
//
// The limit is never older than the transaction: the statement finds out whether the
// plan was read before what it sees, and then the plan is read again. A plan
// that changes while the statement waits for the counter's row counts from the next call on.
//
// Errors: *InvalidArgument, *QuotaExceeded, *PolicyViolation, *ResourceLocked,
// ErrUnavailable and subscriptions.ErrNotEntitled leave the transaction usable and nothing
// counted. Any other is the database's, unchanged inside the chain, and has spoilt
// the transaction.
//
// In READ COMMITTED, which is PostgreSQL's default, a call waits for the transactions
// that changed the counter before it, and is refused without waiting when what has been
// committed leaves no room. In REPEATABLE READ and SERIALIZABLE the counter's row may have
// changed since the transaction began; PostgreSQL then fails the statement with
// SQLSTATE 40001, and the caller runs the whole transaction again.
//
// A transaction that changes several counters one by one should do so in the order
// of their names, or with ConsumeAll, so that two of them can't wait for each other.
func (c *Counters) Consume(ctx context.Context, tx pgx.Tx, change Change) (Balance, error) {
	return c.inTransaction(ctx, change, func(t terms) (Balance, reading, error) { return c.consume(ctx, tx, t, change) })
}

// inTransaction makes a change by the terms that are in force.
func (c *Counters) inTransaction(ctx context.Context, change Change, do func(terms) (Balance, reading, error)) (Balance, error) {
	if err := change.check(); err != nil {
		return Balance{}, err
	}
	var balance Balance
	err := c.onCurrentPlan(ctx, change.WorkspaceID, change.Feature, func(t terms) (reading, error) {
		var err error
		var r reading
		balance, r, err = do(t)
		return r, err
	})
	return balance, err
}

// reading is what a statement found out about the plan it was given.
type reading struct {
	// fresh is false where the database has a newer one.
	fresh bool
	// revision is the workspace's in the database.
	revision int64
}

// onCurrentPlan asks with the terms that are in force: again with newer ones when
// those turn out to be old.
func (c *Counters) onCurrentPlan(ctx context.Context, workspace, feature string, ask func(terms) (reading, error)) error {
	for range staleAttempts {
		t, err := c.termsOf(ctx, workspace, feature)
		if err != nil {
			return err
		}
		r, err := ask(t)
		if err != nil || r.fresh {
			return err
		}
		c.drop(ctx, t.plan, r)
	}
	return fmt.Errorf("%w: the plan of workspace %s changes faster than it is read", ErrUnavailable, workspace)
}

// drop makes the cache read a plan again. A new catalog changes the default plan without
// a revision of the workspace, and can only be told by dropping whatever is there: not
// when somebody else has done so, whose reading it would spoil.
func (c *Counters) drop(ctx context.Context, old subscriptions.PlanInfo, r reading) {
	if r.revision > old.Revision {
		c.options.Plans.Invalidate(old.WorkspaceID, r.revision)
		return
	}
	now, err := c.termsOf(ctx, old.WorkspaceID, "")
	if err == nil && now.plan.Revision == old.Revision && now.plan.Snapshot.PlanRevision == old.Snapshot.PlanRevision {
		c.options.Plans.Invalidate(old.WorkspaceID, 0)
	}
}

// consume tries a change on a reading of the plan, which may turn out not to be fresh.
func (c *Counters) consume(ctx context.Context, tx pgx.Tx, t terms, change Change) (Balance, reading, error) {
	if err := t.resourceFault(change); err != nil {
		return Balance{}, reading{}, err
	}
	a := addition{quantity: change.Quantity}
	if change.ResourceID != "" {
		a.resources = []registration{{change.ResourceID, change.Quantity, change.createdAt()}}
	}
	for range raceAttempts {
		o, err := c.add(ctx, tx, t, a)
		switch {
		case err != nil:
			return Balance{}, reading{}, err
		case !o.Fresh:
			return Balance{}, o.reading(), nil
		case o.Written != nil:
			return t.balance(*o.Written), o.reading(), c.tell(ctx, tx, o.reached(t))
		case o.Seen > t.room(change.Quantity):
			return Balance{}, o.reading(), t.refusal(change, finding{o.Seen, o.Locked})
		case change.Quantity == 0:
			return t.balance(o.Seen), o.reading(), nil
		}
	}
	return Balance{}, reading{}, fmt.Errorf("%w: %s of workspace %s changes faster than it is read", ErrUnavailable, t.feature, t.workspace)
}

// resourceFault refuses a resource of a flow.
func (t terms) resourceFault(change Change) error {
	if change.ResourceID != "" && t.kind == subscriptions.FeatureFlow {
		return &InvalidArgument{"resource_id", "must be left out: " + t.feature + " begins anew with each period, and nothing is left to lock"}
	}
	return nil
}
