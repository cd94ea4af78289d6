package stripetest

// renderCharge names its invoice before Basil only, and lists its refunds before
// 2022-11-15 only.
func renderCharge(c *Charge, v Version) map[string]any {
	status := "failed"
	switch {
	case c.Succeeded:
		status = "succeeded"
	case c.Pending:
		status = "pending"
	}
	out := map[string]any{
		"id": c.ID, "object": "charge", "amount": c.Amount, "amount_captured": c.Amount, "amount_refunded": c.Refunded,
		"captured": c.Succeeded, "created": c.Created.Unix(), "currency": c.Currency, "customer": c.Customer,
		"disputed": c.Disputed, "livemode": c.Livemode, "metadata": map[string]any{}, "paid": c.Succeeded,
		"payment_intent": textOrNull(c.PaymentIntent), "refunded": c.Amount > 0 && c.Refunded == c.Amount, "status": status,
	}
	if !v.since(Basil) {
		out["invoice"] = textOrNull(c.Invoice)
	}
	if !v.since(V20221115) {
		var refunds []any
		for _, r := range c.refunds {
			r.charge = c
			refunds = append(refunds, renderRefund(r))
		}
		out["refunds"] = list("/v1/charges/"+c.ID+"/refunds", refunds)
	}
	return out
}

func renderRefund(r refund) map[string]any {
	return map[string]any{
		"id": r.id, "object": "refund", "amount": r.amount, "charge": r.charge.ID, "created": r.created.Unix(),
		"currency": r.charge.Currency, "metadata": map[string]any{}, "payment_intent": textOrNull(r.charge.PaymentIntent),
		"reason": nil, "status": "succeeded",
	}
}

func renderIntent(i intent, v Version) map[string]any {
	c := i.charge
	received := int64(0)
	if c.Succeeded {
		received = c.Amount
	}
	out := map[string]any{
		"id": c.PaymentIntent, "object": "payment_intent", "amount": c.Amount, "amount_received": received,
		"created": c.Created.Unix(), "currency": c.Currency, "customer": c.Customer, "latest_charge": c.ID,
		"livemode": c.Livemode, "metadata": map[string]any{}, "status": i.status,
	}
	if !v.since(Basil) {
		out["invoice"] = textOrNull(c.Invoice)
	}
	if !v.since(V20221115) {
		out["charges"] = list("/v1/charges?payment_intent="+c.PaymentIntent, []any{renderCharge(c, v)})
	}
	return out
}

func renderDispute(d *Dispute) map[string]any {
	moved := []any{}
	if d.Withdrawn || d.Status == "won" {
		moved = append(moved, map[string]any{
			"id": "txn_" + d.ID, "object": "balance_transaction", "amount": -d.Amount, "currency": d.Currency, "type": "adjustment",
		})
	}
	return map[string]any{
		"id": d.ID, "object": "dispute", "amount": d.Amount, "balance_transactions": moved, "charge": d.Charge,
		"created": d.Created.Unix(), "currency": d.Currency, "is_charge_refundable": !d.Withdrawn, "livemode": d.Livemode,
		"metadata": map[string]any{}, "payment_intent": textOrNull(d.PaymentIntent), "reason": "general", "status": d.Status,
	}
}
