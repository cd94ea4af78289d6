package stripetest

import "strconv"

// renderSubscription shows the period on top before Basil and in each item from then on.
func renderSubscription(u *Subscription, v Version) map[string]any {
	items := make([]any, 0, len(u.Items))
	for _, item := range u.Items {
		items = append(items, renderItem(u, item, v))
	}
	out := map[string]any{
		"id": u.ID, "object": "subscription", "application": nil, "application_fee_percent": nil,
		"billing_cycle_anchor": u.Anchor.Unix(), "cancel_at": unixOrNull(u.CancelAt),
		"cancel_at_period_end": u.CancelAtPeriodEnd, "canceled_at": unixOrNull(u.CanceledAt),
		"cancellation_details": map[string]any{"comment": nil, "feedback": nil, "reason": textOrNull(u.CancelReason)},
		"collection_method":    "charge_automatically", "created": u.Created.Unix(), "currency": u.Items[0].Price.Currency,
		"customer": u.Customer, "days_until_due": nil, "default_payment_method": nil, "description": nil,
		"ended_at": unixOrNull(u.EndedAt), "items": list("/v1/subscription_items?subscription="+u.ID, items),
		"latest_invoice": textOrNull(u.LatestInvoice), "livemode": u.Livemode, "metadata": texts(u.Metadata),
		"pause_collection": renderPauseCollection(u.PauseCollection), "pending_update": renderPending(u, v),
		"schedule": textOrNull(u.Schedule), "start_date": u.Created.Unix(), "status": string(u.Status),
		"test_clock": textOrNull(u.TestClock), "trial_end": unixOrNull(u.TrialEnd), "trial_start": unixOrNull(u.TrialStart),
		"trial_settings": map[string]any{
			"end_behavior": map[string]any{"missing_payment_method": string(orElse(u.TrialMissing, MissingInvoices))},
		},
	}
	if v.since(Basil) {
		out["billing_mode"], out["discounts"] = map[string]any{"type": string(u.BillingMode)}, []any{}
	} else {
		shortest := u.shortest()
		out["current_period_start"], out["current_period_end"] = shortest.Start.Unix(), shortest.End.Unix()
		out["discount"], out["plan"], out["quantity"] = nil, nil, nil
		if len(u.Items) == 1 {
			out["plan"], out["quantity"] = renderPlan(u.Items[0].Price), u.Items[0].Quantity
		}
	}
	if v.since(Endive) {
		out["status_details"] = map[string]any{"paused": nil}
		if u.Status == Paused {
			out["status_details"] = map[string]any{"paused": map[string]any{"type": textOrNull(u.PausedBecause)}}
		}
	}
	return out
}

// shortest is the item with the smallest period: the one that the top of a subscription
// shows before Basil.
func (u *Subscription) shortest() Item {
	best := u.Items[0]
	for _, item := range u.Items {
		if item.End.Sub(item.Start) < best.End.Sub(best.Start) {
			best = item
		}
	}
	return best
}

func renderItem(u *Subscription, item Item, v Version) map[string]any {
	out := map[string]any{
		"id": item.ID, "object": "subscription_item", "created": item.Created.Unix(), "metadata": map[string]any{},
		"plan": renderPlan(item.Price), "price": renderPrice(item.Price), "quantity": item.Quantity,
		"subscription": u.ID, "tax_rates": []any{},
	}
	if v.since(Basil) {
		out["current_period_start"], out["current_period_end"] = item.Start.Unix(), item.End.Unix()
	}
	return out
}

func renderPauseCollection(p *PauseCollection) any {
	if p == nil {
		return nil
	}
	return map[string]any{"behavior": p.Behavior, "resumes_at": unixOrNull(p.ResumesAt)}
}

func renderPending(u *Subscription, v Version) any {
	p := u.PendingUpdate
	if p == nil {
		return nil
	}
	items := make([]any, 0, len(p.Items))
	for _, item := range p.Items {
		items = append(items, renderItem(u, item, v))
	}
	return map[string]any{
		"billing_cycle_anchor": unixOrNull(p.Anchor), "expires_at": p.ExpiresAt.Unix(), "subscription_items": items,
		"trial_end": nil, "trial_from_plan": nil,
	}
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
