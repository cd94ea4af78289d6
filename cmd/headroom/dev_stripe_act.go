package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/webhooks/stripetest"
)

// devActions are what the fake Stripe can be had to do.
const devActions = "subscribe,renew,upgrade,downgrade,fail-payment,recover-payment,cancel,cancel-at-end,trial-end,trial"

// devTrial is how long the trial of `dev stripe trial` is.
const devTrial = 14 * 24 * time.Hour

// devDone is what came of an action.
type devDone struct {
	// Events are the types that Stripe told, in order; Refused are answers to deliveries
	// that were not 200.
	Events  []string `json:"events"`
	Refused []string `json:"refused"`
	// Error is why Stripe did not do it.
	Error string `json:"error"`
}

// serveAction does one action and answers when the worker is through.
func (d *devStripe) serveAction(w http.ResponseWriter, r *http.Request) {
	done, err := d.act(r.Context(), r.PathValue("action"), r.PathValue("workspace"))
	status := http.StatusOK
	if err != nil {
		status, done.Error = http.StatusConflict, err.Error()
	}
	writeJSON(w, status, done)
}

// act has Stripe do something about a workspace's subscription, delivers what it tells,
// and waits until that is looked up.
func (d *devStripe) act(ctx context.Context, action, workspace string) (devDone, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	done := devDone{Events: []string{}, Refused: []string{}}
	switch {
	case d.endpoint == nil:
		return done, errors.New("headroom is not ready yet: try again")
	case !schemas.ValidID(workspace):
		return done, fmt.Errorf("workspace %q: %s", workspace, idRule)
	case len(d.prices) == 0:
		return done, errors.New("no plan of the catalog has stripe_prices")
	}
	if err := d.do(action, workspace); err != nil {
		return done, err
	}
	for _, delivery := range d.endpoint.Flush(ctx) {
		done.Events = append(done.Events, delivery.Event.Type)
		if !delivery.OK() {
			done.Refused = append(done.Refused, fmt.Sprintf("%s: %d %s %v", delivery.Event.Type, delivery.Status, delivery.Answer, delivery.Err))
		}
	}
	return done, d.settled(ctx)
}

func (d *devStripe) do(action, workspace string) error {
	sub, subscribed := d.subscriptionOf(workspace)
	switch {
	case action == "subscribe" || action == "trial":
		if subscribed {
			return fmt.Errorf("workspace %s has subscription %s already", workspace, sub.ID)
		}
		return d.subscribe(workspace, action == "trial")
	case !subscribed:
		return fmt.Errorf("workspace %s has no live subscription: `headroom dev stripe subscribe %s`", workspace, workspace)
	}
	var err error
	switch action {
	case "renew":
		_, err = d.stripe.Renew(sub.ID)
	case "upgrade":
		err = d.change(sub, 1)
	case "downgrade":
		err = d.change(sub, -1)
	case "fail-payment":
		if err = d.stripe.SetPayment(sub.Customer, stripetest.PaymentDeclines); err == nil {
			_, err = d.stripe.Renew(sub.ID)
		}
	case "recover-payment":
		err = d.recover(sub)
	case "cancel":
		_, err = d.stripe.Cancel(sub.ID)
	case "cancel-at-end":
		yes := true
		_, err = d.stripe.Update(sub.ID, stripetest.UpdateParams{CancelAtPeriodEnd: &yes})
	case "trial-end":
		// It ends a day later, so that it lasted.
		if err = d.stripe.AdvanceTestClock(sub.TestClock, sub.Created.Add(24*time.Hour)); err == nil {
			_, err = d.stripe.Update(sub.ID, stripetest.UpdateParams{EndTrial: true})
		}
	default:
		err = fmt.Errorf("action %q: must be one of %s", action, strings.ReplaceAll(devActions, ",", ", "))
	}
	return err
}

// subscriptionOf is the newest live subscription of a workspace.
func (d *devStripe) subscriptionOf(workspace string) (stripetest.Subscription, bool) {
	all := d.stripe.Subscriptions()
	for _, sub := range slices.Backward(all) {
		if sub.Metadata["workspace_id"] == workspace && sub.EndedAt.IsZero() {
			return sub, true
		}
	}
	return stripetest.Subscription{}, false
}

func (d *devStripe) subscribe(workspace string, trial bool) error {
	customer := d.stripe.CreateCustomer(stripetest.CustomerParams{TestClock: d.stripe.CreateTestClock(time.Now())})
	params := stripetest.SubscribeParams{
		Customer: customer.ID, Price: d.prices[0].price, Metadata: map[string]string{"workspace_id": workspace},
	}
	if trial {
		params.Trial = devTrial
	}
	_, err := d.stripe.Subscribe(params)
	return err
}

// change goes to the plan that is so many ranks away.
func (d *devStripe) change(sub stripetest.Subscription, by int) error {
	at := slices.IndexFunc(d.prices, func(p planPrice) bool { return p.price == sub.Items[0].Price.ID })
	if at < 0 || at+by < 0 || at+by >= len(d.prices) {
		return errors.New("no plan of the catalog with stripe_prices lies beyond the one that it is on")
	}
	_, err := d.stripe.Update(sub.ID, stripetest.UpdateParams{Price: d.prices[at+by].price})
	return err
}

// recover pays what is open.
func (d *devStripe) recover(sub stripetest.Subscription) error {
	if err := d.stripe.SetPayment(sub.Customer, stripetest.PaymentSucceeds); err != nil {
		return err
	}
	paid := false
	for _, invoice := range d.stripe.Invoices(sub.ID) {
		if invoice.Status == stripetest.InvoiceOpen {
			if err := d.stripe.PayInvoice(invoice.ID); err != nil {
				return err
			}
			paid = true
		}
	}
	if !paid {
		return errors.New("nothing is unpaid: `headroom dev stripe fail-payment` first")
	}
	return nil
}

// readDone reads the answer to an action.
func readDone(response *http.Response) (devDone, error) {
	var done devDone
	if err := json.NewDecoder(response.Body).Decode(&done); err != nil {
		return done, fmt.Errorf("read what dev answers: %w", err)
	}
	if done.Error != "" {
		return done, errors.New(done.Error)
	}
	return done, nil
}
