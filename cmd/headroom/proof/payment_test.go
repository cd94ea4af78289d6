package proof_test

import (
	"testing"
	"time"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
	"github.com/headroomhq/headroom/webhooks/stripetest"
)

// What money does to the counters: only a period gives a fresh quota, and one that is not
// paid does as the policy says.
func TestOnlyAPeriodGivesAFreshQuotaWhateverIsPaid(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		policy subscriptions.Policy
		scene  func(*billing, stripetest.Subscription)
		used   int64
		plan   string
	}{
		"a renewal on the same plan": {
			scene: func(b *billing, s stripetest.Subscription) { b.renew(s) }, used: 1, plan: renewingPlan,
		},
		"a paid change within the period": {
			scene: func(b *billing, s stripetest.Subscription) {
				b.change(s, stripetest.UpdateParams{Quantity: 5, Proration: stripetest.AlwaysInvoice})
			}, used: 4, plan: renewingPlan,
		},
		"an anchor moved at will": {
			scene: func(b *billing, s stripetest.Subscription) {
				b.change(s, stripetest.UpdateParams{AnchorNow: true})
			}, used: 4, plan: renewingPlan,
		},
		"a failed renewal in its grace": {
			scene: func(b *billing, s stripetest.Subscription) { b.declines(s); b.renew(s) }, used: 1, plan: renewingPlan,
		},
		"a failed renewal that is held": {
			policy: subscriptions.Policy{HoldUnpaid: true},
			scene:  func(b *billing, s stripetest.Subscription) { b.declines(s); b.renew(s) }, used: 4, plan: renewingPlan,
		},
		"the end": {
			scene: func(b *billing, s stripetest.Subscription) {
				if _, err := b.stripe.Cancel(s.ID); err != nil {
					b.Fatal(err)
				}
			}, used: 1, plan: "free",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, plan{key: renewingPlan, quota: 100_000})
			h.store = subscriptions.NewStore(h.pool, subscriptions.StoreOptions{Policy: test.policy})
			b, i := h.bill(), h.start()
			s := b.subscribe("ws")
			h.eventually("it has subscribed", func() bool { return h.pays("ws") != "" })
			h.broadcast("ws", []*instance{i})
			var d schemas.DecisionMade
			for _, execution := range []string{"x1", "x2", "x3"} {
				d = i.one(t, "ws", execution)
			}
			if !d.Allowed || d.Used != 3 {
				t.Fatalf("the third is %+v", d)
			}
			test.scene(b, s)
			b.deliver()
			b.idle()
			h.broadcast("ws", []*instance{i})
			if d := i.one(t, "ws", "x4"); !d.Allowed || d.Used != test.used || d.PlanKey != test.plan {
				t.Errorf("after it: %+v, want it to be allowed, number %d on %s", d, test.used, test.plan)
			}
		})
	}
}

func (b *billing) renew(s stripetest.Subscription) {
	b.Helper()
	if _, err := b.stripe.Renew(s.ID); err != nil {
		b.Fatal(err)
	}
}

func (b *billing) declines(s stripetest.Subscription) {
	b.Helper()
	if err := b.stripe.SetPayment(s.Customer, stripetest.PaymentDeclines); err != nil {
		b.Fatal(err)
	}
}

func (b *billing) change(s stripetest.Subscription, p stripetest.UpdateParams) {
	b.Helper()
	if _, err := b.stripe.Update(s.ID, p); err != nil {
		b.Fatal(err)
	}
}

// idle waits until what was delivered is looked up.
func (b *billing) idle() {
	b.Helper()
	b.eventually("every look-up is over", func() bool {
		lookups, _, err := b.lookups.Backlog(b.Context(), time.Now())
		return err == nil && lookups == 0
	})
}
