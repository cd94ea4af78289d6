package webhooks_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/webhooks"
)

func TestWhoLooksInThisProcessIsWoken(t *testing.T) {
	t.Parallel()
	h := newHouse(t, webhooks.ModeLive)
	woken := func() bool {
		select {
		case <-h.ledger.Woken():
			return true
		default:
			return false
		}
	}
	for _, c := range []struct {
		body string
		want bool
	}{
		{event("evt_1", "customer.subscription.updated", aSubscription), true},
		{event("evt_2", "customer.subscription.updated", aSubscription), true},
		{event("evt_3", "price.updated", "{}"), false},
		{"?", false},
		{event("evt_4", "charge.refunded", `{"id":"ch_1"}`), true},
	} {
		h.deliver(t, c.body)
		if got := woken(); got != c.want {
			t.Errorf("after %.40s: woken %t", c.body, got)
		}
	}
	h.deliver(t, event("evt_5", "customer.subscription.updated", aSubscription))
	h.deliver(t, event("evt_6", "customer.subscription.updated", aSubscription))
	if !woken() || woken() {
		t.Error("two deliveries that nobody waited for do not wake once")
	}
}

func TestWhoLooksInAnotherProcessIsWoken(t *testing.T) {
	t.Parallel()
	h := newHouse(t, webhooks.ModeLive)
	h.deliver(t, event("evt_1", "customer.subscription.updated", aSubscription))
	session, err := pgx.Connect(t.Context(), schematest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close(context.WithoutCancel(t.Context())) }()
	if _, err := session.Exec(t.Context(), "LISTEN "+webhooks.WakeChannel); err != nil {
		t.Fatal(err)
	}
	for name, asks := range map[string]func() error{
		"a replay": func() error {
			_, err := h.ledger.Replay(t.Context(), "evt_1", noon)
			return err
		},
		"a request without an event": func() error {
			_, err := h.ledger.Ask(t.Context(), acme, "sync", noon)
			return err
		},
	} {
		if err := asks(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if _, err := session.WaitForNotification(ctx); err != nil {
			t.Errorf("%s wakes nobody: %v", name, err)
		}
		cancel()
	}
	if g := generation(t, h.pool, "sub_acme"); g != 3 {
		t.Errorf("generation is %d, want 3", g)
	}
}
