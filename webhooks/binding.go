package webhooks

import (
	"time"

	"github.com/headroomhq/headroom/subscriptions"
)

// billedPeriod is a period that invoices may be for.
type billedPeriod struct {
	subscriptionID string
	period         subscriptions.Period
	// item is the one whose price is the plan's. Unresolved means that no price is,
	// so that the line of any item counts.
	item       subscriptionItem
	unresolved bool
	// pastDue is whether the subscription waits for money that is due.
	pastDue bool
	// endedAt is when the subscription ended, nil while it runs.
	endedAt *time.Time
}

// paymentState is what the invoices say of the payment of a period:
//
//	what bills the period                             its state
//	an invoice that is paid, whatever it came to      paid
//	one that failed, or was written off               failed
//	one that is not finished or not due yet           pending
//	none, or only ones that were voided               none
//
// Of several the best counts: one that failed may have been replaced by one that is
// paid. A period is billed by a line for the plan's item that begins when the period does
// and is no proration. The invoice's own period is of no use: it looks back. Only
// if nothing bills the period, the charges for a change within it do; a change that
// is not paid takes nothing from a period that is.
func paymentState(b billedPeriod, invoices []invoiceObject) string {
	for _, bills := range []func(invoiceLine) bool{b.isItsLine, b.isItsStart, b.isItsChange} {
		state := subscriptions.PaymentNone
		for _, invoice := range invoices {
			if b.has(invoice, bills) {
				state = better(state, b.stateOf(invoice))
			}
		}
		if state != subscriptions.PaymentNone {
			return state
		}
	}
	return subscriptions.PaymentNone
}

func (b billedPeriod) has(invoice invoiceObject, bills func(invoiceLine) bool) bool {
	for _, line := range invoice.Lines {
		owner := line.SubscriptionID
		if owner == "" {
			owner = invoice.SubscriptionID
		}
		if owner == b.subscriptionID && bills(line) {
			return true
		}
	}
	return false
}

// isItsLine: the plan's item for this period.
func (b billedPeriod) isItsLine(line invoiceLine) bool {
	return b.isItsStart(line) && (b.unresolved || b.isOfItem(line))
}

// isOfItem compares the item, which keeps its id when its price is exchanged, or
// the price where a line does not name the item.
func (b billedPeriod) isOfItem(line invoiceLine) bool {
	if line.ItemID != "" && b.item.ID != "" {
		return line.ItemID == b.item.ID
	}
	return line.PriceID != "" && line.PriceID == b.item.PriceID
}

// isItsStart: any item for this period. The plan's may have been another one when
// the period began.
func (b billedPeriod) isItsStart(line invoiceLine) bool {
	return !line.Proration && line.Start.Equal(b.period.Start)
}

// isItsChange: what a change within the period costs. What it gives back is of the
// old terms.
func (b billedPeriod) isItsChange(line invoiceLine) bool {
	return line.Proration && line.Amount >= 0 &&
		!line.Start.Before(b.period.Start) && line.Start.Before(b.period.End)
}

func (b billedPeriod) stateOf(invoice invoiceObject) string {
	switch {
	case invoice.Paid && b.late(invoice):
		// The subscription was over: the money changes nothing any more.
		return subscriptions.PaymentFailed
	case invoice.Paid:
		return subscriptions.PaymentPaid
	case invoice.Status == invoiceUncollectible:
		return subscriptions.PaymentFailed
	case invoice.Status == invoiceOpen && (b.pastDue || invoice.Attempted && invoice.Attempts > 0):
		return subscriptions.PaymentFailed
	case invoice.Status == invoiceOpen || invoice.Status == invoiceDraft:
		return subscriptions.PaymentPending
	default:
		return subscriptions.PaymentNone
	}
}

func (b billedPeriod) late(invoice invoiceObject) bool {
	return b.endedAt != nil && invoice.PaidAt != nil && invoice.PaidAt.After(*b.endedAt)
}

func better(a, b string) string {
	for _, state := range []string{subscriptions.PaymentPaid, subscriptions.PaymentFailed, subscriptions.PaymentPending} {
		if a == state || b == state {
			return state
		}
	}
	return subscriptions.PaymentNone
}
