package webhooks_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/webhooks"
)

// decoded is what a decoder makes of an object, which it has to accept.
func decoded[T any](t *testing.T, decode func(json.RawMessage) (T, error), body string) T {
	t.Helper()
	got, err := decode(json.RawMessage(body))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestWhatIsReadOfPayments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ got, want any }{
		"a refunded charge": {
			decoded(t, webhooks.DecodeCharge, `{"id":"ch_1","customer":"cus_acme","invoice":{"id":"in_feb"},"payment_intent":"pi_1","livemode":true,"amount":7500,"amount_refunded":2500,"refunded":false,"disputed":true}`),
			webhooks.ChargeObject{ID: "ch_1", InvoiceID: "in_feb", AmountRefunded: 2500},
		},
		"a charge of basil": {
			decoded(t, webhooks.DecodeCharge, `{"id":"ch_1","payment_intent":{"id":"pi_1"},"refunded":true}`),
			webhooks.ChargeObject{ID: "ch_1"},
		},
		"a refund": {
			decoded(t, webhooks.DecodeRefund, `{"id":"re_1","charge":"ch_1","payment_intent":null,"status":"succeeded","amount":100}`),
			webhooks.RefundObject{ID: "re_1", ChargeID: "ch_1"},
		},
		"a dispute that has the money": {
			decoded(t, webhooks.DecodeDispute, `{"id":"dp_1","charge":"ch_1","livemode":true,"status":"needs_response","reason":"fraudulent","amount":7500,"created":1769904000,"balance_transactions":[{"amount":-7500}]}`),
			webhooks.DisputeObject{ID: "dp_1", ChargeID: "ch_1", Status: "needs_response", Withdrawn: 7500},
		},
		"a dispute that was won": {
			decoded(t, webhooks.DecodeDispute, `{"id":"dp_1","charge":"ch_1","status":"won","balance_transactions":[{"amount":-7500},{"amount":7500}]}`),
			webhooks.DisputeObject{ID: "dp_1", ChargeID: "ch_1", Status: "won"},
		},
		"a session": {
			decoded(t, webhooks.DecodeSession, `{"id":"cs_1","livemode":true,"mode":"subscription","subscription":{"id":"sub_acme"},"customer":"cus_acme","client_reference_id":"acme","metadata":{"workspace_id":"acme","a":7,"b":null},"payment_status":"unpaid"}`),
			webhooks.CheckoutSession{ID: "cs_1", SubscriptionID: "sub_acme", ClientReferenceID: "acme", Metadata: map[string]string{"workspace_id": "acme", "a": ""}},
		},
		"a customer that was deleted": {
			decoded(t, webhooks.DecodeCustomer, `{"id":"cus_acme","deleted":true,"object":"customer"}`),
			webhooks.CustomerObject{ID: "cus_acme"},
		},
		"a customer of old": {
			decoded(t, webhooks.DecodeCustomer, `{"id":"cus_acme","livemode":true,"test_clock":"clock_1","metadata":{"a":"b","c":null},"subscriptions":{"data":[{"id":"sub_a"},{"id":"sub_b"}]}}`),
			webhooks.CustomerObject{ID: "cus_acme", Subscriptions: []string{"sub_a", "sub_b"}},
		},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if inquiry := decoded(t, webhooks.DecodeDispute, `{"id":"dp_1","status":"warning_needs_response"}`); !inquiry.Inquiry() || inquiry.Withdrawn != 0 {
		t.Errorf("an inquiry is %+v", inquiry)
	}
}

func TestPaymentsWithoutWhatIsNeededAreUndecodable(t *testing.T) {
	t.Parallel()
	none := json.RawMessage(`{"id":7}`)
	_, charge := webhooks.DecodeCharge(none)
	_, refund := webhooks.DecodeRefund(none)
	_, dispute := webhooks.DecodeDispute(none)
	_, session := webhooks.DecodeSession(none)
	_, customer := webhooks.DecodeCustomer(none)
	_, statusless := webhooks.DecodeDispute(json.RawMessage(`{"id":"dp_1"}`))
	_, transactions := webhooks.DecodeDispute(json.RawMessage(`{"id":"dp_1","status":"won","balance_transactions":[3]}`))
	_, listed := webhooks.DecodeCustomer(json.RawMessage(`{"id":"cus_1","subscriptions":[3]}`))
	for path, err := range map[string]error{
		"charge.id": charge, "refund.id": refund, "dispute.id": dispute, "session.id": session, "customer.id": customer,
		"dispute.status": statusless, "dispute.balance_transactions[0]": transactions, "customer.subscriptions[0]": listed,
	} {
		var fault *webhooks.Undecodable
		if !errors.As(err, &fault) || fault.Path() != path {
			t.Errorf("%v, want a fault of %s", err, path)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, kind := range []string{"subscription", "invoice"} {
		for _, body := range fixtures(f, kind) {
			f.Add(body)
		}
	}
	f.Add([]byte(`{"id":"a","status":"b","created":1,"livemode":true,"current_period_start":-1,"current_period_end":9e99}`))
	f.Add([]byte(`{"id":"a","status":"b","created":1,"livemode":true,"current_period_start":253402300799,"current_period_end":253402300800}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if s, err := webhooks.DecodeSubscription(body); err == nil {
			checkSubscription(t, s)
		}
		if i, err := webhooks.DecodeInvoice(body); err == nil {
			for _, line := range i.Lines {
				if line.Start.Unix() <= 0 || line.End.Before(line.Start) {
					t.Errorf("a line from %s to %s", line.Start, line.End)
				}
			}
			if i.Paid != (i.Status == "paid") {
				t.Errorf("an invoice of status %s is paid: %t", i.Status, i.Paid)
			}
		}
		// What these accept is checked by the tables; here they must only not panic.
		_, _ = webhooks.DecodeCharge(body)
		_, _ = webhooks.DecodeRefund(body)
		_, _ = webhooks.DecodeDispute(body)
		_, _ = webhooks.DecodeSession(body)
		_, _ = webhooks.DecodeCustomer(body)
	})
}

func checkSubscription(t *testing.T, s webhooks.SubscriptionObject) {
	t.Helper()
	if s.ID == "" || s.Status == "" || len(s.Items) == 0 {
		t.Errorf("a subscription without what is needed: %+v", s)
	}
	for _, item := range s.Items {
		if item.Period.Start.Unix() <= 0 || !item.Period.Start.Before(item.Period.End) || item.Quantity < 0 {
			t.Errorf("an item with a period from %s to %s and %d of it", item.Period.Start, item.Period.End, item.Quantity)
		}
	}
	for _, at := range []*time.Time{&s.Created, s.CancelAt, s.CanceledAt, s.EndedAt, s.TrialEnd} {
		if at != nil && (at.Unix() <= 0 || at.Year() > 9999) {
			t.Errorf("an instant %s", at)
		}
	}
}
