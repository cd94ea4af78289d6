package webhooks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/subscriptions"
)

// The kinds of a claim.
const (
	claimRefund  = "refund"
	claimDispute = "dispute"
)

// claim is money of a subscription that was given back or is contested.
type claim struct {
	Kind string
	// ID is the charge's of a refund, else the dispute's.
	ID        string
	InvoiceID string
	// Status is the dispute's.
	Status string
	// Amount is what was given back, or what a dispute has withdrawn now.
	Amount int64
	// Told is whether a payload says so, which may be an old one, and not Stripe itself.
	Told bool `db:"-"`
}

// claims are those of one subscription, by kind and id.
type claims []claim

func claimsOf(ctx context.Context, q queryer, key syncKey) (claims, error) {
	rows, err := q.Query(ctx, `SELECT kind, stripe_id, invoice_id, status, amount FROM stripe_claims
		WHERE account = @account AND livemode = @livemode AND subscription_id = @subscription
		ORDER BY kind, stripe_id`, key.args())
	if err != nil {
		return nil, fmt.Errorf("read claims on subscription %s: %w", key.SubscriptionID, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[claim])
	if err != nil {
		return nil, fmt.Errorf("read claims on subscription %s: %w", key.SubscriptionID, err)
	}
	return found, nil
}

// write stores how a claim stands now, where it is no step back: refunds grow, and a
// dispute goes from an inquiry over what is contested to its close. Of one that is
// contested a payload that shows less of the money withdrawn is the older one.
func (c claim) write(ctx context.Context, q queryer, key syncKey, now time.Time) error {
	args := key.args()
	args["kind"], args["id"], args["invoice"] = c.Kind, c.ID, c.InvoiceID
	args["status"], args["amount"], args["at"], args["told"] = c.Status, c.Amount, now, c.Told
	_, err := q.Exec(ctx, `INSERT INTO stripe_claims AS c
			(account, livemode, kind, stripe_id, subscription_id, invoice_id, status, amount, updated_at)
		VALUES (@account, @livemode, @kind, @id, @subscription, @invoice, @status, @amount, @at)
		ON CONFLICT (account, livemode, kind, stripe_id) DO UPDATE
			SET status = excluded.status, amount = excluded.amount, updated_at = excluded.updated_at
			WHERE CASE WHEN c.kind = '`+claimRefund+`' THEN excluded.amount > c.amount
				WHEN excluded.status IN `+closedSQL+` THEN true
				WHEN c.status IN `+closedSQL+` THEN false
				WHEN excluded.status LIKE 'warning_%' THEN c.status LIKE 'warning_%'
				ELSE NOT @told OR excluded.amount >= c.amount END`, args)
	if err != nil {
		return fmt.Errorf("store %s %s: %w", c.Kind, c.ID, err)
	}
	return nil
}

// dispute reports whether a dispute has withdrawn the money of a period: one that is
// open, whichever period it is about, or one that was lost and is about this one.
func (all claims) dispute(b billedPeriod, invoices []invoiceObject) bool {
	return slices.ContainsFunc(all, func(c claim) bool {
		if c.Kind != claimDispute || c.Amount == 0 {
			return false
		}
		return c.Status != disputeLost || slices.ContainsFunc(invoices, func(i invoiceObject) bool {
			return i.ID == c.InvoiceID && b.has(i, b.isItsStart)
		})
	})
}

// note writes the claims into the audit trail, each once as it stands.
func (all claims) note(ctx context.Context, tx pgx.Tx, store *subscriptions.Store, key syncKey) error {
	for _, c := range all {
		text := fmt.Sprintf("%s %d of invoice %s", c.Status, c.Amount, c.InvoiceID)
		note := subscriptions.Note{Field: c.Kind + " " + c.ID, Value: strings.TrimSpace(text), Cause: "stripe"}
		if err := store.NoteIn(ctx, tx, key.keyOf(), note); err != nil {
			return err
		}
	}
	return nil
}

// closedSQL are the statuses of a dispute that is over.
const closedSQL = `('` + disputeWon + `', '` + disputeLost + `', 'warning_closed')`

// The ends of a dispute.
const (
	disputeWon  = "won"
	disputeLost = "lost"
)

// claim is how a dispute stands. One that was won has given the money back, whatever
// moved before.
func (d disputeObject) claim(invoice string) claim {
	c := claim{Kind: claimDispute, ID: d.ID, InvoiceID: invoice, Status: tidy(d.Status), Amount: d.Withdrawn}
	if d.Status == disputeWon || d.inquiry() {
		c.Amount = 0
	}
	return c
}
