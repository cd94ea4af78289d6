package webhooks

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/subscriptions"
)

// conclusion is what a look-up came to.
type conclusion struct {
	verdict  verdict
	customer string
	// learned is a customer that was mapped.
	learned string
}

// write carries a finding out in one transaction.
func (w *Worker) write(ctx context.Context, j lookup, f finding) error {
	prices, _, err := w.catalog.now(ctx)
	if err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, w.ledger.pool, func(tx pgx.Tx) error {
		c, err := w.writeIn(ctx, tx, deed{lookup: j, finding: f, prices: prices})
		if err != nil {
			return err
		}
		if err := w.concludeIn(ctx, tx, j, c); err != nil {
			return err
		}
		w.probe.at("written")
		return nil
	})
	if err == nil {
		w.probe.at("settled")
	}
	return err
}

// deed is a finding that is to be written, and by what it is judged.
type deed struct {
	lookup
	finding
	prices priceLookup
}

func (w *Worker) writeIn(ctx context.Context, tx pgx.Tx, d deed) (conclusion, error) {
	o := d.Subscription
	c := conclusion{customer: storable(o.CustomerID), verdict: verdict{state: StateDone}}
	claims, err := claimsOf(ctx, tx, d.key)
	if err != nil {
		return c, err
	}
	snapshot, err := snapshotOf(sighting{
		Account: d.key.Account, Subscription: o, Invoices: d.Invoices, Claims: claims,
		Plans: d.prices, Mode: w.ledger.mode,
	})
	if errors.Is(err, errOtherMode) {
		c.verdict = verdict{state: StateIgnored, reason: err.Error()}
		return c, nil
	}
	if err != nil {
		return c, err
	}
	owner, err := ownerOf(ctx, tx, d.key, d.finding)
	if err != nil {
		return c, err
	}
	if owner.workspace == "" || owner.learned != "" {
		// Whoever maps the customer at this moment is waited for, or waits.
		if err := lockCustomer(ctx, tx, d.key, o.CustomerID); err != nil {
			return c, err
		}
		if owner, err = ownerOf(ctx, tx, d.key, d.finding); err != nil {
			return c, err
		}
	}
	workspace, learned, err := owner.keep(ctx, tx, d.key)
	if err != nil {
		return c, err
	}
	if learned {
		c.learned = owner.learned
	}
	if workspace == "" {
		c.verdict = withoutOwner(o, owner)
		return c, nil
	}
	w.contradicted(ctx, d, workspace)
	c.verdict.workspace = workspace
	snapshot.State.WorkspaceID = workspace
	err = w.follow(ctx, tx, followed{deed: d, snapshot: snapshot, claims: claims, conclusion: &c})
	return c, err
}

// withoutOwner is the verdict while it is not known whose a subscription is. One that
// is over gets no rows any more, whoever's it was.
func withoutOwner(o subscriptionObject, owner ownership) verdict {
	if o.ended() {
		return verdict{state: StateIgnored, reason: "it has ended, and no workspace was ever known"}
	}
	return verdict{state: StateUnmapped, reason: owner.reason}
}

// contradicted tells that Stripe carries another workspace than the mapping, which stays.
func (w *Worker) contradicted(ctx context.Context, d deed, workspace string) {
	said := d.Subscription.Metadata[workspaceField]
	for _, s := range d.Sessions {
		said = firstOf(said, s.workspace())
	}
	if said != "" && said != workspace {
		w.log.WarnContext(ctx, "stripe names another workspace than the one that the subscription belongs to, which stays",
			"subscription_id", d.key.SubscriptionID, "workspace_id", workspace, "named", tidy(said))
	}
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// followed is a subscription whose rows are to be written.
type followed struct {
	deed
	snapshot   sourceSnapshot
	claims     claims
	conclusion *conclusion
}

// follow writes the rows, and says what becomes of the events.
func (w *Worker) follow(ctx context.Context, tx pgx.Tx, f followed) error {
	s := f.snapshot
	cause := "stripe: " + f.cause
	row, err := w.store.FollowIn(ctx, tx, s.State, cause)
	if s.State.PlanUnresolved && errors.Is(err, subscriptions.ErrUnknownPlan) {
		w.tally.unresolved.Add(1)
		if f.Subscription.ended() {
			return nil
		}
		f.conclusion.verdict.state = StateParked
		f.conclusion.verdict.reason = fmt.Sprintf("%snone of its prices is in the catalog: %v", unresolved, s.Prices)
		w.log.ErrorContext(ctx, "subscription has no plan: none of its prices is in the catalog",
			"subscription_id", f.key.SubscriptionID, "workspace_id", s.State.WorkspaceID, "prices", s.Prices)
		return nil
	}
	if err != nil {
		return err
	}
	if s.UnknownStatus != "" {
		f.conclusion.verdict.state = StateParked
		f.conclusion.verdict.reason = fmt.Sprintf("status %q is not known: the last known one stays in force", tidy(s.UnknownStatus))
	}
	if s.State.PlanUnresolved && row.ID != "" && row.ClosedAt == nil {
		w.tally.unresolved.Add(1)
		w.log.WarnContext(ctx, "subscription keeps its last plan: none of its prices is in the catalog",
			"subscription_id", f.key.SubscriptionID, "workspace_id", s.State.WorkspaceID, "plan_key", row.PlanKey, "prices", s.Prices)
	}
	return f.claims.note(ctx, tx, w.store, f.key)
}

// conclude settles a look-up that writes no rows.
func (w *Worker) conclude(ctx context.Context, j lookup, c conclusion) error {
	return pgx.BeginFunc(ctx, w.ledger.pool, func(tx pgx.Tx) error { return w.concludeIn(ctx, tx, j, c) })
}

// concludeIn settles a look-up and its events, unless one that began later did so. The
// workspace's row is locked by now if there is one, so that this look is the last.
func (w *Worker) concludeIn(ctx context.Context, tx pgx.Tx, j lookup, c conclusion) error {
	args := j.key.args()
	args["generation"], args["customer"] = j.generation, c.customer
	args["outcome"], args["reason"] = c.verdict.state, tidy(c.verdict.reason)
	rows, err := tx.Query(ctx, `SELECT synced_generation < @generation FROM stripe_sync_requests
		WHERE account = @account AND livemode = @livemode AND subscription_id = @subscription`, args)
	if err != nil {
		return fmt.Errorf("read the look-up of subscription %s: %w", j.key.SubscriptionID, err)
	}
	first, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
	switch {
	case err != nil:
		return fmt.Errorf("read the look-up of subscription %s: %w", j.key.SubscriptionID, err)
	case !first:
		return errOvertaken
	}
	c.verdict.at = w.now().UTC()
	if err := w.ledger.settledThrough(ctx, tx, settlement{key: j.key, generation: j.generation, verdict: c.verdict}); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE stripe_sync_requests SET outcome = @outcome, reason = @reason,
			customer_id = coalesce(nullif(@customer, ''), customer_id)
		WHERE account = @account AND livemode = @livemode AND subscription_id = @subscription
			AND synced_generation <= @generation`, args)
	if err != nil {
		return fmt.Errorf("note what the look-up of subscription %s came to: %w", j.key.SubscriptionID, err)
	}
	w.tally.count(c.verdict.state)
	if c.learned == "" {
		return nil
	}
	_, err = askWaiting(ctx, tx, j.key, c.learned, c.verdict.at)
	return err
}

// ended reports whether the subscription is over for good.
func (s subscriptionObject) ended() bool {
	return s.Status == subscriptions.StatusCanceled || s.Status == subscriptions.StatusIncompleteExpired
}
