package webhooks

import "slices"

// EventTypes are the types to select for the endpoint, sorted. They are all that is
// needed, and those that a Sweep misses when they were not delivered. invoice.created is
// none of them on purpose: Stripe holds up a customer's invoice, for up to three days,
// while an endpoint that selected it does not answer.
func EventTypes() []string {
	return []string{
		"charge.dispute.closed",
		"charge.dispute.created",
		"charge.dispute.funds_reinstated",
		"charge.dispute.funds_withdrawn",
		"charge.dispute.updated",
		"charge.refunded",
		"checkout.session.async_payment_failed",
		"checkout.session.async_payment_succeeded",
		"checkout.session.completed",
		"customer.deleted",
		"customer.subscription.created",
		"customer.subscription.deleted",
		"customer.subscription.paused",
		"customer.subscription.pending_update_applied",
		"customer.subscription.pending_update_expired",
		"customer.subscription.resumed",
		"customer.subscription.updated",
		"invoice.finalization_failed",
		"invoice.finalized",
		"invoice.marked_uncollectible",
		"invoice.paid",
		"invoice.payment_action_required",
		"invoice.payment_failed",
		"invoice.voided",
		"subscription_schedule.aborted",
		"subscription_schedule.canceled",
		"subscription_schedule.released",
		"subscription_schedule.updated",
	}
}

// selected reports whether the endpoint is to be sent events of the type.
func selected(eventType string) bool {
	_, found := slices.BinarySearch(EventTypes(), eventType)
	return found
}
