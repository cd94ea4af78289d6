package webhooks

import (
	"encoding/json"
	"time"
)

// The statuses of an invoice that mean something here.
const (
	invoiceDraft         = "draft"
	invoiceOpen          = "open"
	invoicePaid          = "paid"
	invoiceUncollectible = "uncollectible"
	invoiceVoid          = "void"
)

// invoiceObject is an invoice as Stripe has it at one moment.
type invoiceObject struct {
	ID string
	// SubscriptionID is empty for an invoice that is about none.
	SubscriptionID string
	Status         string
	// Paid is true for what cost nothing, was covered by credit or paid elsewhere too.
	Paid bool
	// PaidAt is when it became so, nil if that is not said.
	PaidAt *time.Time
	// Attempts counts payments that were tried; Attempted is whether any was.
	Attempts  int64
	Attempted bool
	Created   time.Time
	Lines     []invoiceLine
	// MoreLines means that the object lists some of its lines only: ask for the rest.
	MoreLines bool
}

// invoiceLine is what one line of an invoice is for.
type invoiceLine struct {
	ID             string
	PriceID        string
	ItemID         string
	SubscriptionID string
	// Proration marks what a change within a period costs or gives back.
	Proration bool
	Amount    int64
	// Start and End are what is paid for, and may be the same instant.
	Start, End time.Time
}

// decodeInvoice reads an invoice of any version. An *undecodable error names what
// is missing.
func decodeInvoice(raw json.RawMessage) (invoiceObject, error) {
	o, err := parseObject("invoice", raw)
	if err != nil {
		return invoiceObject{}, err
	}
	i := invoiceObject{
		Attempted: o.isTrue("attempted"),
		PaidAt:    o.object("status_transitions").instant("paid_at"),
		MoreLines: o.object("lines").isTrue("has_more"),
	}
	i.Attempts, _ = o.number("attempt_count")
	if i.ID, err = o.ownID(); err != nil {
		return invoiceObject{}, err
	}
	created := o.instant("created")
	if created == nil {
		return invoiceObject{}, &undecodable{o.at("created"), missing}
	}
	i.Created = *created
	if err := i.standing(o); err != nil {
		return invoiceObject{}, err
	}
	return i, i.bill(o)
}

// standing reads whether it is paid: the status says so in every version, and where
// it is missing the boolean does that later versions have no more.
func (i *invoiceObject) standing(o jsonObject) error {
	i.Status = o.text("status")
	if i.Status != "" {
		i.Paid = i.Status == invoicePaid
		return nil
	}
	paid, known := o.truth("paid")
	if !known {
		return &undecodable{o.at("status"), missing}
	}
	i.Status, i.Paid = invoiceOpen, paid
	if paid {
		i.Status = invoicePaid
	}
	return nil
}

// bill reads the lines and whose they are.
func (i *invoiceObject) bill(o jsonObject) error {
	listed, err := o.objects("lines")
	if err != nil {
		return err
	}
	owners := []string{o.id("subscription"), o.object("parent").object("subscription_details").id("subscription")}
	for _, element := range listed {
		line, err := decodeLine(element)
		if err != nil {
			return err
		}
		i.Lines = append(i.Lines, line)
		owners = append(owners, line.SubscriptionID)
	}
	if named := nonEmpty(owners...); len(named) > 0 {
		i.SubscriptionID = named[0]
	}
	return nil
}

func decodeLine(o jsonObject) (invoiceLine, error) {
	line := invoiceLine{
		ID: o.text("id"), PriceID: priceOf(o), SubscriptionID: lineSubscription(o),
		ItemID:    lineDetail(o, "subscription_item"),
		Proration: o.isTrue("proration"),
	}
	line.Amount, _ = o.number("amount")
	for _, details := range lineParents(o) {
		line.Proration = line.Proration || details.isTrue("proration")
	}
	span := o.object("period")
	start, end := span.instant("start"), span.instant("end")
	switch {
	case start == nil:
		return invoiceLine{}, &undecodable{span.at("start"), missing}
	case end == nil:
		return invoiceLine{}, &undecodable{span.at("end"), missing}
	case end.Before(*start):
		return invoiceLine{}, &undecodable{span.at("end"), "is before its start"}
	}
	line.Start, line.End = *start, *end
	return line, nil
}

// lineParents is where a line's origin is since 2025-03-31.basil.
func lineParents(line jsonObject) []jsonObject {
	parent := line.object("parent")
	return []jsonObject{parent.object("subscription_item_details"), parent.object("invoice_item_details")}
}

// lineSubscription is the subscription that a line is for, empty if it is for none.
func lineSubscription(line jsonObject) string { return lineDetail(line, "subscription") }

func lineDetail(line jsonObject, field string) string {
	if id := line.id(field); id != "" {
		return id
	}
	for _, details := range lineParents(line) {
		if id := details.id(field); id != "" {
			return id
		}
	}
	return ""
}
