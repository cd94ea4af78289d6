package stripetest

// renderInvoice names its subscription on top before Basil and under parent from then on;
// that is also when paid went and only the status tells it.
func renderInvoice(i *Invoice, v Version) map[string]any {
	lines := make([]any, 0, len(i.Lines))
	for _, line := range i.Lines {
		lines = append(lines, renderLine(i, line, v))
	}
	attempted := i.AttemptCount > 0 || i.Status == InvoicePaid
	out := map[string]any{
		"id": i.ID, "object": "invoice", "amount_due": i.AmountDue, "amount_paid": i.AmountPaid,
		"amount_remaining": i.AmountDue - i.AmountPaid, "attempt_count": i.AttemptCount, "attempted": attempted,
		"auto_advance": i.AutoAdvance, "billing_reason": string(i.Reason), "collection_method": "charge_automatically",
		"created": i.Created.Unix(), "currency": i.Currency, "customer": i.Customer, "description": nil, "discounts": []any{},
		"ending_balance": nil, "lines": list("/v1/invoices/"+i.ID+"/lines", lines), "livemode": i.Livemode,
		"metadata": map[string]any{}, "next_payment_attempt": unixOrNull(i.NextAttempt), "number": textOrNull(i.Number),
		"period_end": i.PeriodEnd.Unix(), "period_start": i.PeriodStart.Unix(), "starting_balance": -i.CreditUsed,
		"status": string(i.Status), "subtotal": i.Total, "total": i.Total, "test_clock": textOrNull(i.TestClock),
		"status_transitions": map[string]any{
			"finalized_at": unixOrNull(i.FinalizedAt), "marked_uncollectible_at": unixOrNull(i.GivenUpAt),
			"paid_at": unixOrNull(i.PaidAt), "voided_at": unixOrNull(i.VoidedAt),
		},
	}
	if v.since(Basil) {
		out["parent"] = renderInvoiceParent(i)
		return out
	}
	out["paid"], out["paid_out_of_band"] = i.Status == InvoicePaid, i.PaidOutOfBand
	out["charge"], out["payment_intent"] = textOrNull(i.Charge), textOrNull(i.PaymentIntent)
	out["subscription"], out["tax"], out["discount"] = textOrNull(i.Subscription), nil, nil
	if v.since(V20231016) && i.Subscription != "" {
		out["subscription_details"] = map[string]any{"metadata": texts(i.Metadata)}
	}
	return out
}

func renderInvoiceParent(i *Invoice) any {
	if i.Subscription == "" {
		return nil
	}
	return map[string]any{
		"type": "subscription_details", "quote_details": nil,
		"subscription_details": map[string]any{"metadata": texts(i.Metadata), "subscription": i.Subscription},
	}
}

func renderLine(i *Invoice, line Line, v Version) map[string]any {
	out := map[string]any{
		"id": line.ID, "object": "line_item", "amount": line.Amount, "currency": i.Currency,
		"description": textOrNull(line.Description), "discountable": !line.Proration, "discounts": []any{},
		"invoice": i.ID, "livemode": i.Livemode, "metadata": map[string]any{}, "quantity": line.Quantity,
		"period": map[string]any{"start": line.Start.Unix(), "end": line.End.Unix()},
	}
	if v.since(Basil) {
		out["parent"], out["pricing"], out["taxes"] = renderLineParent(line), renderPricing(line), []any{}
		return out
	}
	out["price"], out["plan"] = nil, nil
	if line.Price.ID != "" {
		out["price"], out["plan"] = renderPrice(line.Price), renderPlan(line.Price)
	}
	out["proration"], out["proration_details"] = line.Proration, map[string]any{"credited_items": nil}
	out["subscription"], out["type"] = textOrNull(line.Subscription), "subscription"
	if line.Item != "" {
		out["subscription_item"] = line.Item
	}
	if line.InvoiceItem != "" {
		out["invoice_item"], out["type"] = line.InvoiceItem, "invoiceitem"
	}
	return out
}

// renderLineParent is of a subscription item, but for prorations in classic mode and
// one-off lines: those come from an invoice item.
func renderLineParent(line Line) map[string]any {
	if line.InvoiceItem != "" {
		return map[string]any{
			"type": "invoice_item_details", "subscription_item_details": nil,
			"invoice_item_details": map[string]any{
				"invoice_item": line.InvoiceItem, "proration": line.Proration,
				"proration_details": map[string]any{"credited_items": nil}, "subscription": textOrNull(line.Subscription),
			},
		}
	}
	return map[string]any{
		"type": "subscription_item_details", "invoice_item_details": nil,
		"subscription_item_details": map[string]any{
			"invoice_item": nil, "proration": line.Proration, "proration_details": map[string]any{"credited_items": nil},
			"subscription": line.Subscription, "subscription_item": line.Item,
		},
	}
}

func renderPricing(line Line) any {
	if line.Price.ID == "" {
		return nil
	}
	return map[string]any{
		"type": "price_details", "unit_amount_decimal": decimal(line.Price.Amount),
		"price_details": map[string]any{"price": line.Price.ID, "product": line.Price.Product},
	}
}
