package stripetest

import "time"

// render is an object as the API shows it at a version.
func render(object any, v Version) map[string]any {
	switch o := object.(type) {
	case *Subscription:
		return renderSubscription(o, v)
	case *Invoice:
		return renderInvoice(o, v)
	case *Customer:
		return renderCustomer(o)
	case *Price:
		return renderPrice(*o)
	case *Session:
		return renderSession(o)
	case *Charge:
		return renderCharge(o, v)
	case *Dispute:
		return renderDispute(o)
	case *Schedule:
		return renderSchedule(o)
	case intent:
		return renderIntent(o, v)
	case refund:
		return renderRefund(o)
	case Event:
		return o.render(v)
	case Foreign:
		return o.Object
	default:
		return map[string]any{}
	}
}

func unixOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.Unix()
}

func textOrNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// texts is metadata as it is rendered: never null.
func texts(m map[string]string) map[string]any {
	out := map[string]any{}
	for key, value := range m {
		out[key] = value
	}
	return out
}

func list(url string, data []any) map[string]any {
	if data == nil {
		data = []any{}
	}
	return map[string]any{"object": "list", "url": url, "has_more": false, "data": data}
}

func renderPrice(p Price) map[string]any {
	return map[string]any{
		"id": p.ID, "object": "price", "active": p.Active, "billing_scheme": "per_unit", "created": p.Created.Unix(),
		"currency": p.Currency, "livemode": false, "lookup_key": nil, "metadata": map[string]any{}, "nickname": nil,
		"product": p.Product, "type": "recurring", "unit_amount": p.Amount, "unit_amount_decimal": decimal(p.Amount),
		"recurring": map[string]any{
			"interval": string(p.Interval), "interval_count": p.Count, "trial_period_days": nil, "usage_type": "licensed",
		},
		"tax_behavior": "unspecified", "tiers_mode": nil, "transform_quantity": nil,
	}
}

// renderPlan is the price in the form that was there before prices.
func renderPlan(p Price) map[string]any {
	return map[string]any{
		"id": p.ID, "object": "plan", "active": p.Active, "amount": p.Amount, "amount_decimal": decimal(p.Amount),
		"billing_scheme": "per_unit", "created": p.Created.Unix(), "currency": p.Currency, "interval": string(p.Interval),
		"interval_count": p.Count, "livemode": false, "metadata": map[string]any{}, "nickname": nil, "product": p.Product,
		"tiers_mode": nil, "trial_period_days": nil, "usage_type": "licensed",
	}
}

func renderCustomer(c *Customer) map[string]any {
	if c.Deleted {
		return map[string]any{"id": c.ID, "object": "customer", "deleted": true}
	}
	return map[string]any{
		"id": c.ID, "object": "customer", "balance": c.Balance, "created": c.Created.Unix(), "currency": "usd",
		"delinquent": false, "description": nil, "email": textOrNull(c.Email), "livemode": c.Livemode,
		"metadata": texts(c.Metadata), "name": nil, "test_clock": textOrNull(c.TestClock),
	}
}

func renderSession(c *Session) map[string]any {
	return map[string]any{
		"id": c.ID, "object": "checkout.session", "amount_total": c.Amount, "client_reference_id": textOrNull(c.ClientReferenceID),
		"created": c.Created.Unix(), "currency": "usd", "customer": c.Customer, "expires_at": c.Created.Add(day).Unix(),
		"invoice": textOrNull(c.Invoice), "livemode": c.Livemode, "metadata": texts(c.Metadata), "mode": "subscription",
		"payment_intent": nil, "payment_status": c.PaymentStatus, "status": c.Status, "subscription": textOrNull(c.Subscription),
	}
}

func renderSchedule(c *Schedule) map[string]any {
	out := map[string]any{
		"id": c.ID, "object": "subscription_schedule", "created": c.Created.Unix(), "customer": c.Customer,
		"end_behavior": "release", "livemode": c.Livemode, "metadata": map[string]any{}, "status": c.Status,
		"subscription": c.Subscription, "released_subscription": nil, "released_at": unixOrNull(c.ReleasedAt),
		"test_clock": textOrNull(c.TestClock), "current_phase": map[string]any{"start_date": c.CurrentStart.Unix()},
		"phases": []any{
			map[string]any{"end_date": c.At.Unix(), "items": []any{map[string]any{"price": c.firstPhasePrice}}},
			map[string]any{"start_date": c.At.Unix(), "items": []any{map[string]any{"price": c.Price}}},
		},
	}
	if c.Status == "released" {
		out["subscription"], out["released_subscription"] = nil, c.Subscription
	}
	return out
}
