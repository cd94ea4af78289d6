package webhooks

import "strings"

// concern is how an event of a type leads to what may have changed.
type concern int

const (
	concernsNothing concern = iota
	// concernsSubscription: the object is the subscription.
	concernsSubscription
	// concernsReferred: the object refers to one.
	concernsReferred
	// concernsInvoice: the object is an invoice, whose subscription has been in
	// three places over the years.
	concernsInvoice
	// concernsObject: which subscriptions is only known when the object was looked up.
	concernsObject
)

// concernOf is the table of what each type of event concerns; there is no other. A
// type that is not in it, or not yet, concerns nothing.
func concernOf(eventType string) concern {
	switch eventType {
	case "checkout.session.completed",
		"checkout.session.async_payment_succeeded", "checkout.session.async_payment_failed",
		"subscription_schedule.aborted", "subscription_schedule.canceled", "subscription_schedule.completed",
		"subscription_schedule.created", "subscription_schedule.released", "subscription_schedule.updated":
		return concernsReferred
	case "charge.refunded", "charge.refund.updated",
		"charge.dispute.created", "charge.dispute.updated", "charge.dispute.closed",
		"charge.dispute.funds_withdrawn", "charge.dispute.funds_reinstated",
		"refund.created", "refund.updated", "refund.failed",
		"customer.deleted":
		return concernsObject
	case "invoice.upcoming", "invoice.sent", "invoice.will_be_due":
		// Notices. The invoice to come has no id and is none yet.
		return concernsNothing
	}
	switch {
	case strings.HasPrefix(eventType, "customer.subscription."):
		return concernsSubscription
	case strings.HasPrefix(eventType, "invoice."):
		return concernsInvoice
	default:
		return concernsNothing
	}
}

// subscriptions are the ids that the object leads to by itself. Without any the
// event is about none, or the object has to be looked up first.
func (c concern) subscriptions(object jsonObject) ([]string, error) {
	switch c {
	case concernsSubscription:
		return nonEmpty(object.text("id")), nil
	case concernsReferred:
		return nonEmpty(object.id("subscription"), object.id("released_subscription")), nil
	case concernsInvoice:
		return invoiceSubscriptions(object)
	case concernsObject:
		return objectSubscriptions(object)
	default:
		return nil, nil
	}
}

// invoiceSubscriptions are the invoice's own and those of its lines, which may be
// several.
func invoiceSubscriptions(invoice jsonObject) ([]string, error) {
	ids := []string{
		invoice.id("subscription"),
		invoice.object("parent").object("subscription_details").id("subscription"),
	}
	lines, err := invoice.objects("lines")
	if err != nil {
		return nil, err
	}
	for _, line := range lines {
		ids = append(ids, lineSubscription(line))
	}
	return nonEmpty(ids...), nil
}

// objectSubscriptions are those that an expanded invoice or an old customer names.
func objectSubscriptions(object jsonObject) ([]string, error) {
	ids, err := invoiceSubscriptions(object.object("invoice"))
	if err != nil {
		return nil, err
	}
	listed, err := object.objects("subscriptions")
	if err != nil {
		return nil, err
	}
	for _, subscription := range listed {
		ids = append(ids, subscription.text("id"))
	}
	return nonEmpty(ids...), nil
}

func nonEmpty(ids ...string) []string {
	var found []string
	for _, id := range ids {
		if id != "" {
			found = append(found, id)
		}
	}
	return found
}
