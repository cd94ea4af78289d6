package webhooks_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/webhooks"
)

// Every verified body is answered with 200; deliver fails the test otherwise.
func TestEveryVerifiedBodyIsStored(t *testing.T) {
	t.Parallel()
	h := newHouse(t, webhooks.ModeLive)
	plain := func(id string) string { return event(id, "customer.subscription.updated", aSubscription) }
	edit := func(id, from, to string) string { return strings.Replace(plain(id), from, to, 1) }
	for name, c := range map[string]struct{ body, state, reason string }{
		"plain":                     {plain("evt_plain"), "received", ""},
		"empty":                     {"", "parked", "no JSON object"},
		"garbage":                   {"\x00\xff not json", "parked", "no JSON object"},
		"null":                      {"null", "parked", "no JSON object"},
		"a list":                    {"[1]", "parked", "no JSON object"},
		"a text":                    {`"evt_1"`, "parked", "no JSON object"},
		"an empty object":           {"{}", "parked", "id is missing"},
		"cut":                       {plain("evt_cut")[:90], "parked", "no JSON object"},
		"two bodies":                {plain("evt_a") + plain("evt_b"), "parked", "no JSON object"},
		"an id that is a number":    {edit("evt_number", `"evt_number"`, "7"), "parked", "id is missing"},
		"an id with a NUL":          {edit("evt_nul", "evt_nul", `evt\u0000`), "parked", "id is missing or is none"},
		"an id of a kilobyte":       {edit("evt_long", "evt_long", strings.Repeat("e", 4000)), "parked", "id is missing or is none"},
		"an account with a NUL":     {edit("evt_account", `"id":`, `"account":"\u0000","id":`), "parked", "account is none"},
		"a type with a NUL":         {edit("evt_type", `subscription.updated"`, `subscription.\u0000"`), "received", ""},
		"an unknown type":           {event("evt_unknown", "customer.tax_thing.invented", `{"id":"x"}`), "ignored", "nothing follows"},
		"no type":                   {edit("evt_typeless", `"type":"customer.subscription.updated",`, ""), "parked", "type is missing"},
		"a type of a megabyte":      {event("evt_wide", strings.Repeat("ü", 1<<18), `{}`), "ignored", "nothing follows"},
		"a thin event":              {`{"id":"evt_thin","object":"v2.core.event","type":"v1.customer.created","created":"2026-01-01T00:00:00Z","livemode":true,"related_object":{"id":"cus_1"}}`, "parked", "v2.core.event"},
		"a string request":          {edit("evt_request", `{"id":null,"idempotency_key":null}`, `"req_1"`), "received", ""},
		"a created that is a text":  {edit("evt_created", "1795000000", `"soon"`), "received", ""},
		"a created beyond all time": {edit("evt_beyond", "1795000000", "1e300"), "received", ""},
		"a huge number":             {edit("evt_huge", `"cus_acme"`, strings.Repeat("9", 10000)), "received", ""},
		"types all wrong":           {`{"id":"evt_wrong","object":[],"type":{"a":1},"api_version":7,"created":[],"livemode":"yes","data":"x"}`, "parked", "no snapshot event"},
		"no livemode":               {edit("evt_modeless", `"livemode":true,`, ""), "parked", "livemode is missing"},
		"no data":                   {strings.Replace(plain("evt_dataless"), `"data"`, `"date"`, 1), "parked", "data.object is missing"},
		"no object":                 {event("evt_objectless", "customer.subscription.updated", "null"), "parked", "data.object is missing"},
		"an object that is a text":  {event("evt_text", "customer.subscription.updated", `"sub_1"`), "parked", "data.object is missing"},
		"an object without id":      {event("evt_idless", "customer.subscription.updated", `{"object":"subscription"}`), "parked", "data.object.id is missing"},
		"a subscription with a NUL": {event("evt_subnul", "customer.subscription.updated", `{"id":"sub_\u0000"}`), "parked", "subscription's id is none"},
		"lines that are no objects": {event("evt_lines", "invoice.paid", `{"id":"in_1","subscription":"sub_1","lines":{"data":[7]}}`), "parked", "lines.data[0]: is no JSON object"},
		"keys given twice":          {edit("evt_first", `"id":`, `"id":"evt_overwritten","type":"x","id":`), "received", ""},
		"keys in capitals":          {edit("evt_capitals", `"id":`, `"ID":"evt_other","TYPE":"x","id":`), "received", ""},
		"nested deeply":             {edit("evt_deep", `"cus_acme"`, strings.Repeat("[", 9000)+strings.Repeat("]", 9000)), "received", ""},
		"nested beyond reason":      {edit("evt_abyss", `"cus_acme"`, strings.Repeat("[", 100000)+strings.Repeat("]", 100000)), "parked", "no JSON object"},
		"test mode":                 {edit("evt_test", `"livemode":true`, `"livemode":false`), "ignored", "HEADROOM_STRIPE_MODE is live"},
	} {
		if state := h.deliver(t, c.body); state != c.state {
			t.Errorf("%s: it is %s, want %s", name, state, c.state)
		}
		reason := query[string](t, h.pool, `SELECT reason FROM stripe_events WHERE body = $1`, []byte(c.body))
		if !strings.Contains(reason, c.reason) || (c.reason == "") != (reason == "") {
			t.Errorf("%s: the reason is %q, want %q", name, reason, c.reason)
		}
		if state := h.deliver(t, c.body); state != c.state {
			t.Errorf("%s: delivered again it is %s", name, state)
		}
	}
	if ids := query[int64](t, h.pool, `SELECT count(*) FROM stripe_events WHERE event_id IN ('evt_overwritten', 'evt_other')`); ids != 0 {
		t.Error("an event goes by a key that was overwritten, or has another case")
	}
}

func TestTheModeChoosesAWorld(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode        webhooks.Mode
		livemode    bool
		state, says string
	}{
		{webhooks.ModeLive, true, "received", ""},
		{webhooks.ModeLive, false, "ignored", "it is of test mode, and HEADROOM_STRIPE_MODE is live"},
		{webhooks.ModeTest, false, "received", ""},
		{webhooks.ModeTest, true, "ignored", "it is of live mode, and HEADROOM_STRIPE_MODE is test"},
		{webhooks.ModeAny, true, "received", ""},
		{webhooks.ModeAny, false, "received", ""},
	} {
		body := strings.Replace(event("evt_1", "customer.subscription.updated", aSubscription), `"livemode":true`, fmt.Sprintf(`"livemode":%t`, c.livemode), 1)
		got := webhooks.Sniff([]byte(body), c.mode)
		if got.State != c.state || got.Reason != c.says {
			t.Errorf("mode %s, livemode %t: %s %q", c.mode, c.livemode, got.State, got.Reason)
		}
		if (len(got.Subscriptions) > 0) != (c.state == "received") {
			t.Errorf("mode %s, livemode %t: asks for %v", c.mode, c.livemode, got.Subscriptions)
		}
	}
}

func TestWhatAnEventConcerns(t *testing.T) {
	t.Parallel()
	const (
		acme     = "sub_acme"
		charge   = `{"id":"ch_1","object":"charge","customer":{"id":"cus_acme"},"invoice":"in_1"}`
		invoice  = `{"id":"in_1","object":"invoice","customer":"cus_acme","subscription":"sub_acme","lines":{"data":[]}}`
		expanded = `{"id":"in_1","object":"invoice","subscription":{"id":"sub_acme"}}`
		basil    = `{"id":"in_1","object":"invoice","parent":{"type":"subscription_details","subscription_details":{"subscription":"sub_acme"}}}`
		byLine   = `{"id":"in_1","object":"invoice","lines":{"data":[{"parent":{"subscription_item_details":{"subscription":"sub_acme"}}}]}}`
		byItem   = `{"id":"in_1","object":"invoice","lines":{"data":[{"parent":{"invoice_item_details":{"subscription":"sub_acme"}}}]}}`
		several  = `{"id":"in_1","object":"invoice","subscription":"sub_b","lines":{"data":[{"subscription":"sub_b"},{"subscription":"sub_a"}]}}`
		session  = `{"id":"cs_1","object":"checkout.session","customer":"cus_acme","subscription":"sub_acme"}`
	)
	for _, c := range []struct {
		kind, object, state string
		want                []string
	}{
		{"customer.subscription.created", aSubscription, "received", []string{acme}},
		{"customer.subscription.updated", aSubscription, "received", []string{acme}},
		{"customer.subscription.deleted", aSubscription, "received", []string{acme}},
		{"customer.subscription.paused", aSubscription, "received", []string{acme}},
		{"customer.subscription.resumed", aSubscription, "received", []string{acme}},
		{"customer.subscription.trial_will_end", aSubscription, "received", []string{acme}},
		{"customer.subscription.pending_update_applied", aSubscription, "received", []string{acme}},
		{"customer.subscription.pending_update_expired", aSubscription, "received", []string{acme}},
		{"invoice.created", invoice, "received", []string{acme}},
		{"invoice.finalized", invoice, "received", []string{acme}},
		{"invoice.finalization_failed", invoice, "received", []string{acme}},
		{"invoice.paid", invoice, "received", []string{acme}},
		{"invoice.paid", expanded, "received", []string{acme}},
		{"invoice.paid", basil, "received", []string{acme}},
		{"invoice.paid", byLine, "received", []string{acme}},
		{"invoice.paid", byItem, "received", []string{acme}},
		{"invoice.paid", several, "received", []string{"sub_a", "sub_b"}},
		{"invoice.paid", `{"id":"in_1","object":"invoice","subscription":null}`, "ignored", nil},
		{"invoice.payment_succeeded", invoice, "received", []string{acme}},
		{"invoice.payment_failed", invoice, "received", []string{acme}},
		{"invoice.payment_action_required", invoice, "received", []string{acme}},
		{"invoice.voided", invoice, "received", []string{acme}},
		{"invoice.marked_uncollectible", invoice, "received", []string{acme}},
		{"invoice.upcoming", `{"object":"invoice","subscription":"sub_acme"}`, "ignored", nil},
		{"checkout.session.completed", session, "received", []string{acme}},
		{"checkout.session.completed", `{"id":"cs_1","mode":"payment","subscription":null}`, "ignored", nil},
		{"checkout.session.async_payment_succeeded", session, "received", []string{acme}},
		{"checkout.session.async_payment_failed", session, "received", []string{acme}},
		{"checkout.session.expired", session, "ignored", nil},
		{"subscription_schedule.released", `{"id":"sub_sched_1","subscription":null,"released_subscription":"sub_acme"}`, "received", []string{acme}},
		{"subscription_schedule.updated", `{"id":"sub_sched_1","subscription":"sub_acme"}`, "received", []string{acme}},
		{"subscription_schedule.aborted", `{"id":"sub_sched_1"}`, "ignored", nil},
		{"charge.refunded", charge, "received", nil},
		{"charge.refunded", `{"id":"ch_1","invoice":` + expanded + `}`, "received", []string{acme}},
		{"charge.refund.updated", `{"id":"re_1","object":"refund","charge":"ch_1"}`, "received", nil},
		{"refund.created", `{"id":"re_1","object":"refund","charge":"ch_1"}`, "received", nil},
		{"charge.dispute.created", `{"id":"dp_1","object":"dispute","charge":"ch_1"}`, "received", nil},
		{"charge.dispute.funds_withdrawn", `{"id":"dp_1","object":"dispute","charge":"ch_1"}`, "received", nil},
		{"charge.dispute.closed", `{"object":"dispute","charge":"ch_1"}`, "parked", nil},
		{"charge.succeeded", charge, "ignored", nil},
		{"customer.deleted", `{"id":"cus_acme","object":"customer"}`, "received", nil},
		{"customer.deleted", `{"id":"cus_acme","object":"customer","subscriptions":{"data":[{"id":"sub_b"},{"id":"sub_a"}]}}`, "received", []string{"sub_a", "sub_b"}},
		{"customer.updated", `{"id":"cus_acme","object":"customer"}`, "ignored", nil},
		{"price.updated", `{"id":"price_1"}`, "ignored", nil},
		{"entitlements.active_entitlement_summary.updated", `{"customer":"cus_acme"}`, "ignored", nil},
		{"test_helpers.test_clock.advancing", `{"id":"clock_1"}`, "ignored", nil},
		{"invoiceitem.created", `{"id":"ii_1","subscription":"sub_acme"}`, "ignored", nil},
	} {
		got := webhooks.Sniff([]byte(event("evt_1", c.kind, c.object)), webhooks.ModeLive)
		if got.State != c.state || !cmp.Equal(got.Subscriptions, c.want) {
			t.Errorf("%s %s: %s about %v (%s), want %s about %v", c.kind, c.object, got.State, got.Subscriptions, got.Reason, c.state, c.want)
		}
		if (got.State == "received") != (got.Reason == "") {
			t.Errorf("%s: %s for the reason %q", c.kind, got.State, got.Reason)
		}
	}
}

func FuzzSniff(f *testing.F) {
	for _, kind := range []string{"invoice.paid", "customer.deleted", "charge.refunded"} {
		f.Add([]byte(event("evt_1", kind, aSubscription)))
	}
	f.Add([]byte(`{"id":"evt\u0000","type":"\ud800","account":"é"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		e := webhooks.Sniff(body, webhooks.ModeAny)
		for _, text := range append([]string{
			e.ID, e.Account, e.Type, e.APIVersion, e.ObjectKind, e.ObjectID, e.Customer, e.Reason,
		}, e.Subscriptions...) {
			if !utf8.ValidString(text) || strings.Contains(text, "\x00") || len(text) > 600 {
				t.Errorf("Postgres refuses %q", text)
			}
		}
		if e.ID == "" || e.State == "" || e.State != "received" && e.Reason == "" {
			t.Errorf("an event without an id, a state or a reason: %+v", e)
		}
		if e.Created != nil && (e.Created.Unix() <= 0 || e.Created.Year() > 9999) {
			t.Errorf("created is %s", e.Created)
		}
	})
}
