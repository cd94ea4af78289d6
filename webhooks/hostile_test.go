package webhooks_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headroomhq/headroom/subscriptions"
)

// Whatever a signed payload holds, it is settled: nothing of it is tried for ever, as what
// Postgres refuses would be.
func TestNoPayloadIsTriedForEver(t *testing.T) {
	t.Parallel()
	sh := newSite(t, subscriptions.Policy{}).open(shopOptions{keyless: true, idle: true})
	const sub = `{"id":"sub_%d","object":"subscription","customer":"cus_%[1]d","status":"active","created":1795000000,"livemode":false,
		"metadata":{"workspace_id":"hostile_%[1]d"},"current_period_start":1795000000,"current_period_end":1797592000,
		"items":{"data":[{"id":"si_1","price":{"id":"price_pro"},"quantity":1}]}}`
	const invoice = `{"id":"in_1","object":"invoice","subscription":"sub_%d","status":"paid","created":1795000000,"lines":{"data":[
		{"id":"il_1","amount":1,"price":{"id":"price_pro"},"period":{"start":1795000000,"end":1797592000}}]}}`
	n := 0
	for _, c := range []struct{ kind, object, from, to string }{
		{"customer.subscription.updated", sub, `"active"`, `"act\u0000ive"`},
		{"customer.subscription.updated", sub, `"active"`, `"` + strings.Repeat("x", 5000) + `"`},
		{"customer.subscription.updated", sub, `"price_pro"`, `"price\u0000"`},
		{"customer.subscription.updated", sub, `"si_1"`, `"\u0000\ud800"`},
		{"customer.subscription.updated", sub, `"cus_%[1]d"`, `"cus\u0000"`},
		{"customer.subscription.updated", sub, `"cus_%[1]d"`, `"` + strings.Repeat("c", 300) + `"`},
		{"customer.subscription.updated", sub, `"hostile_%[1]d"`, `"\u0000"`},
		{"customer.subscription.updated", sub, `"hostile_%[1]d"`, `{"a":1}`},
		{"customer.subscription.updated", sub, `1797592000`, `253402300799`},
		{"customer.subscription.updated", sub, `"current_period_start":1795000000`, `"current_period_start":1`},
		{"customer.subscription.updated", sub, `"current_period_start":1795000000`, `"current_period_start":1797592000`},
		{"customer.subscription.updated", sub, `"quantity":1`, `"quantity":9223372036854775807`},
		{"customer.subscription.updated", sub, `"quantity":1`, `"quantity":-1`},
		{"customer.subscription.updated", sub, `"created":1795000000`, `"created":253402300799`},
		{"customer.subscription.updated", sub, `"livemode":false`, `"livemode":true`},
		{"customer.subscription.updated", sub, `"livemode":false`, `"livemode":"false"`},
		{"customer.subscription.updated", sub, `"items":{"data":[`, `"items":{"data":[null,`},
		{"customer.subscription.updated", sub, `"items":{"data":[`, `"items":{"data":[{},`},
		{"customer.subscription.updated", sub, `"status":"active"`, `"status":"canceled","ended_at":1`},
		{"customer.subscription.updated", sub, `"status":"active"`, `"cancel_at":1,"status":"active"`},
		{"customer.subscription.updated", sub, `"status":"active"`, `"status":"past_due","test_clock":"\u0000"`},
		{"customer.subscription.deleted", sub, `"status":"active"`, `"status":"active"`},
		{"invoice.paid", invoice, `"in_1"`, `"in\u0000"`},
		{"invoice.paid", invoice, `"paid"`, `"\u0000"`},
		{"invoice.paid", invoice, `"amount":1`, `"amount":"x"`},
		{"charge.refunded", `{"id":"ch_1","object":"charge","invoice":"in_1","amount_refunded":1}`, `"in_1"`, `"in\u0000"`},
		{"charge.refunded", `{"id":"ch_1","object":"charge","invoice":"in_1","amount_refunded":1}`, `"ch_1"`, `"ch\u0000"`},
		{"charge.refunded", `{"id":"ch_1","object":"charge","invoice":{"id":"in_1","subscription":"sub_%d"},"amount_refunded":1}`, `"ch_1"`, `"\u0000"`},
		{"charge.dispute.created", `{"id":"dp_1","object":"dispute","charge":"ch_1","status":"needs_response"}`, `"ch_1"`, `"\u0000"`},
		{"charge.dispute.created", `{"id":"dp_1","object":"dispute","charge":"ch_1","status":"needs_response"}`, `"dp_1"`, `5`},
		{"customer.deleted", `{"id":"cus_0","object":"customer"}`, `"cus_0"`, `"cus\u0000"`},
		{"customer.deleted", `{"id":"cus_0","object":"customer"}`, `}`, `,"subscriptions":[{"id":"sub\u0000"}]}`},
		{"checkout.session.completed", `{"id":"cs_1","object":"checkout.session","subscription":"sub_%d","client_reference_id":"w"}`, `"w"`, `"\u0000"`},
	} {
		object := strings.Replace(c.object, c.from, c.to, 1)
		if strings.Contains(object, "%") {
			object = fmt.Sprintf(object, n)
		}
		n++
		sh.bring(fmt.Sprintf(`{"id":"evt_%d","object":"event","api_version":"2024-06-20","created":1795000000,"livemode":false,
			"type":%q,"data":{"object":%s}}`, n, c.kind, object))
	}
	// An invoice that is not told of may be on its way, though for no longer than Stripe delivers.
	_, err := sh.pool.Exec(t.Context(), `UPDATE stripe_events SET received_at = received_at - interval '73 hours'`)
	sh.ok(err)
	sh.employ(shopOptions{})
	sh.settle()
	sh.wantOutcome("charge.dispute.created", "parked", "")
	if stats := sh.workers[0].Stats(); stats.Retries != 0 {
		t.Errorf("stats are %+v", stats)
	}
}
