package webhooks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/headroomhq/headroom/webhooks"
)

var acme = webhooks.SyncKey{Livemode: true, SubscriptionID: "sub_acme"}

func (h house) settle(t testing.TB, state, reason string) {
	t.Helper()
	through := generation(t, h.pool, "sub_acme")
	if err := h.ledger.SettledThrough(t.Context(), acme, through, webhooks.NewVerdict(state, reason, "acme", noon)); err != nil {
		t.Fatal(err)
	}
}

func (h house) one(t testing.TB, id string) webhooks.StoredEvent {
	t.Helper()
	stored, err := h.ledger.Event(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if len(stored) != 1 {
		t.Fatalf("%d events of id %s", len(stored), id)
	}
	return stored[0]
}

func TestAnEventIsStoredOnceHoweverOftenItComes(t *testing.T) {
	t.Parallel()
	h := newHouse(t, webhooks.ModeLive)
	body := event("evt_1", "customer.subscription.updated", aSubscription)
	var deliveries errgroup.Group
	for range 8 {
		deliveries.Go(func() error {
			if code := h.post(t, []byte(body), header([]byte(body), newSecret, noon)).Code; code != 200 {
				return fmt.Errorf("answered %d", code)
			}
			return nil
		})
	}
	if err := deliveries.Wait(); err != nil {
		t.Fatal(err)
	}
	stored := h.one(t, "evt_1")
	if len(stored.Deliveries) != 8 || stored.Event.Deliveries != 8 {
		t.Errorf("%d deliveries, want 8", len(stored.Deliveries))
	}
	// It is not settled, so each delivery may be the one that makes up for an attempt that failed.
	if g := generation(t, h.pool, "sub_acme"); g != 8 {
		t.Errorf("generation is %d, want 8", g)
	}
}

func TestARedeliveryOfWhatIsSettledAsksForNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t, webhooks.ModeLive)
	for i, state := range []string{webhooks.StateDone, webhooks.StateIgnored, webhooks.StateParked, webhooks.StateDead} {
		id := "evt_" + state
		body := event(id, "customer.subscription.updated", aSubscription)
		h.deliver(t, body)
		h.settle(t, state, "because")
		if got := h.deliver(t, body); got != state {
			t.Errorf("%s: it is %s", state, got)
		}
		if g := generation(t, h.pool, "sub_acme"); g != int64(i)+1 {
			t.Errorf("%s: generation is %d, want %d", state, g, i+1)
		}
		if n := len(h.one(t, id).Deliveries); n != 2 {
			t.Errorf("%s: %d deliveries, want 2", state, n)
		}
	}
}

func TestARedeliveryOfWhatIsUnmappedAsksAgain(t *testing.T) {
	t.Parallel()
	h := newHouse(t, webhooks.ModeLive)
	body := event("evt_1", "customer.subscription.updated", aSubscription)
	h.deliver(t, body)
	h.settle(t, webhooks.StateUnmapped, "no workspace")
	if got := h.deliver(t, body); got != webhooks.StateUnmapped {
		t.Errorf("it is %s", got)
	}
	if g := generation(t, h.pool, "sub_acme"); g != 2 {
		t.Errorf("generation is %d, want 2", g)
	}
	h.settle(t, webhooks.StateDone, "")
	if stored := h.one(t, "evt_1"); stored.State != webhooks.StateDone || *stored.WorkspaceID != "acme" {
		t.Errorf("it is %s of %v", stored.State, stored.WorkspaceID)
	}
}

func TestAnotherBodyOfTheSameEventIsNotedAndNotTaken(t *testing.T) {
	t.Parallel()
	h := newHouse(t, webhooks.ModeLive)
	body := event("evt_1", "customer.subscription.updated", aSubscription)
	h.deliver(t, body)
	altered := strings.Replace(body, "cus_acme", "cus_other", 1)
	if state := h.deliver(t, altered); state != webhooks.StateReceived {
		t.Errorf("it is %s", state)
	}
	stored := h.one(t, "evt_1")
	if string(stored.Body) != body {
		t.Error("the first body is gone")
	}
	if d := stored.Deliveries; d[0].SHA256 == d[1].SHA256 || d[1].Bytes != len(altered) {
		t.Errorf("deliveries are %+v", d)
	}
	lines := h.log.lines(t)
	said := []any{lines[0]["altered"], lines[1]["altered"]}
	if diff := cmp.Diff([]any{false, true}, said); diff != "" {
		t.Errorf("altered in the log (-want +got):\n%s", diff)
	}
}

func TestTheSameIDOfTwoAccountsIsTwoEvents(t *testing.T) {
	t.Parallel()
	h := newHouse(t, webhooks.ModeLive)
	for _, account := range []string{"", `"account":"acct_a",`, `"account":"acct_b",`} {
		h.deliver(t, strings.Replace(event("evt_1", "customer.subscription.updated", aSubscription), `"id"`, account+`"id"`, 1))
	}
	stored, err := h.ledger.Event(t.Context(), "evt_1")
	if err != nil {
		t.Fatal(err)
	}
	var accounts []string
	for _, s := range stored {
		accounts = append(accounts, s.Account)
	}
	if diff := cmp.Diff([]string{"", "acct_a", "acct_b"}, accounts); diff != "" {
		t.Errorf("accounts (-want +got):\n%s", diff)
	}
	if n := query[int64](t, h.pool, `SELECT count(*) FROM stripe_sync_requests WHERE subscription_id = 'sub_acme' AND generation = 1`); n != 3 {
		t.Errorf("%d requests, want one for each account", n)
	}
}

func TestTestAndLiveObjectsAskForThemselves(t *testing.T) {
	t.Parallel()
	h := newHouse(t, webhooks.ModeAny)
	body := event("evt_1", "customer.subscription.updated", aSubscription)
	h.deliver(t, body)
	h.deliver(t, strings.Replace(strings.Replace(body, "evt_1", "evt_2", 1), `"livemode":true`, `"livemode":false`, 1))
	if n := query[int64](t, h.pool, `SELECT count(*) FROM stripe_sync_requests`); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}

func TestAnEventOfTwoSubscriptionsIsSettledWithTheSecond(t *testing.T) {
	t.Parallel()
	h := newHouse(t, webhooks.ModeLive)
	h.deliver(t, event("evt_1", "invoice.paid", `{"id":"in_1","subscription":"sub_acme","lines":{"data":[{"subscription":"sub_other"}]}}`))
	done := webhooks.NewVerdict(webhooks.StateDone, "", "acme", noon)
	for _, step := range []struct{ subscription, want string }{{"sub_acme", webhooks.StateReceived}, {"sub_other", webhooks.StateDone}} {
		key := webhooks.SyncKey{Livemode: true, SubscriptionID: step.subscription}
		if err := h.ledger.SettledThrough(t.Context(), key, 1, done); err != nil {
			t.Fatal(err)
		}
		if state := h.one(t, "evt_1").State; state != step.want {
			t.Errorf("after %s it is %s, want %s", step.subscription, state, step.want)
		}
	}
}

func TestTwoLookUpsAtOnceSettleTheEventThatTheyShare(t *testing.T) {
	t.Parallel()
	h := newHouse(t, webhooks.ModeLive)
	h.deliver(t, event("evt_1", "invoice.paid", `{"id":"in_1","subscription":"sub_acme","lines":{"data":[{"subscription":"sub_other"}]}}`))
	done := webhooks.NewVerdict(webhooks.StateDone, "", "acme", noon)
	first, err := h.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Rollback(context.WithoutCancel(t.Context())) }()
	if err := h.ledger.SettledThroughIn(t.Context(), first, webhooks.NewSettlement(acme, 1, done)); err != nil {
		t.Fatal(err)
	}
	second := make(chan error, 1)
	go func() {
		second <- h.ledger.SettledThrough(t.Context(), webhooks.SyncKey{Livemode: true, SubscriptionID: "sub_other"}, 1, done)
	}()
	h.untilSomebodyWaits(t)
	if err := errors.Join(first.Commit(t.Context()), <-second); err != nil {
		t.Fatal(err)
	}
	if state := h.one(t, "evt_1").State; state != webhooks.StateDone {
		t.Errorf("it is %s", state)
	}
}

// untilSomebodyWaits returns when a session of the test's database waits for a lock.
func (h house) untilSomebodyWaits(t *testing.T) {
	t.Helper()
	deadline, tick := time.After(10*time.Second), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !query[bool](t, h.pool, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`) {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("nobody waits")
		}
	}
}

func TestALookUpSettlesWhatCameBeforeItBegan(t *testing.T) {
	t.Parallel()
	h := newHouse(t, webhooks.ModeLive)
	h.deliver(t, event("evt_1", "customer.subscription.created", aSubscription))
	h.deliver(t, event("evt_2", "customer.subscription.updated", aSubscription))
	h.deliver(t, event("evt_3", "customer.subscription.updated", aSubscription))
	done := webhooks.NewVerdict(webhooks.StateDone, "", "acme", noon)
	if err := h.ledger.SettledThrough(t.Context(), acme, 2, done); err != nil {
		t.Fatal(err)
	}
	// One that began earlier and comes later changes nothing of what is noted.
	if err := h.ledger.SettledThrough(t.Context(), acme, 1, done); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"evt_1": "done", "evt_2": "done", "evt_3": "received"} {
		if state := h.one(t, id).State; state != want {
			t.Errorf("%s is %s, want %s", id, state, want)
		}
	}
	if synced := query[int64](t, h.pool, `SELECT synced_generation FROM stripe_sync_requests`); synced != 2 {
		t.Errorf("synced as far as %d, want 2", synced)
	}
}

func TestAnEventDoesNotHurryWhatWaitsForItsNextAttempt(t *testing.T) {
	t.Parallel()
	h := newHouse(t, webhooks.ModeLive)
	h.deliver(t, event("evt_1", "customer.subscription.updated", aSubscription))
	later := noon.Add(time.Hour)
	if _, err := h.pool.Exec(t.Context(), `UPDATE stripe_sync_requests SET attempts = 3, next_attempt_at = $1`, later); err != nil {
		t.Fatal(err)
	}
	h.deliver(t, event("evt_2", "customer.subscription.updated", aSubscription))
	if at := query[time.Time](t, h.pool, `SELECT next_attempt_at FROM stripe_sync_requests`); !at.Equal(later) {
		t.Errorf("the next attempt is at %s", at)
	}
	h.settle(t, webhooks.StateDone, "")
	h.deliver(t, event("evt_3", "customer.subscription.updated", aSubscription))
	if at := query[time.Time](t, h.pool, `SELECT next_attempt_at FROM stripe_sync_requests`); !at.Equal(noon) {
		t.Errorf("after it was synced the next attempt is at %s, want at once", at)
	}
}

func TestWhatASweepKnowsAlreadyChangesNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t, webhooks.ModeLive)
	for i, first := range []bool{true, false} {
		r, err := h.ledger.RecordAs(t.Context(), "sweep", []byte(event("evt_1", "customer.subscription.updated", aSubscription)), noon)
		if err != nil {
			t.Fatal(err)
		}
		if r.First() != first || r.State != webhooks.StateReceived {
			t.Errorf("pass %d: first %t, %s", i, r.First(), r.State)
		}
	}
	if stored := h.one(t, "evt_1"); len(stored.Deliveries) != 1 || stored.Deliveries[0].Origin != "sweep" || stored.Deliveries[0].SignedAt != nil {
		t.Errorf("deliveries are %+v", stored.Deliveries)
	}
	if g := generation(t, h.pool, "sub_acme"); g != 1 {
		t.Errorf("generation is %d, want 1", g)
	}
}

func TestAReplayReadsTheBodyAnew(t *testing.T) {
	t.Parallel()
	h := newHouse(t, webhooks.ModeLive)
	test := strings.Replace(event("evt_1", "customer.subscription.updated", aSubscription), `"livemode":true`, `"livemode":false`, 1)
	if state := h.deliver(t, test); state != webhooks.StateIgnored {
		t.Fatalf("it is %s", state)
	}
	listens := houseOn(t, h.pool, webhooks.ModeAny).ledger
	for want := range int64(3) {
		if g := generation(t, h.pool, "sub_acme"); g != want {
			t.Errorf("generation is %d, want %d", g, want)
		}
		states, err := listens.Replay(t.Context(), "evt_1", noon)
		if err != nil || !cmp.Equal(states, []string{webhooks.StateReceived}) {
			t.Errorf("replayed as %v (%v)", states, err)
		}
	}
	stored := h.one(t, "evt_1")
	if stored.State != webhooks.StateReceived || stored.Reason != "" || len(stored.Deliveries) != 4 || stored.Deliveries[3].Origin != "replay" {
		t.Errorf("it is %+v", stored.Event)
	}
	if states, err := h.ledger.Replay(t.Context(), "evt_1", noon); err != nil || !cmp.Equal(states, []string{webhooks.StateIgnored}) {
		t.Errorf("replayed in live mode as %v (%v)", states, err)
	}
	if _, err := h.ledger.Replay(t.Context(), "evt_none", noon); !errors.Is(err, webhooks.ErrUnknownEvent) {
		t.Errorf("replay of an event that never was: %v", err)
	}
}

func TestAVerdictIsGivenWhateverTheState(t *testing.T) {
	t.Parallel()
	h := newHouse(t, webhooks.ModeLive)
	h.deliver(t, event("evt_1", "charge.refunded", `{"id":"ch_1"}`))
	row := h.one(t, "evt_1").Row
	for _, state := range []string{"dead", "done", "received", "ignored", "unmapped", "parked"} {
		if err := h.ledger.SetState(t.Context(), row, webhooks.NewVerdict(state, "says the test", "", noon)); err != nil {
			t.Fatal(err)
		}
		settled := query[bool](t, h.pool, `SELECT settled_at IS NOT NULL FROM stripe_events`)
		if got := h.one(t, "evt_1"); got.State != state || got.Reason != "says the test" || settled != (state == "done" || state == "ignored") {
			t.Errorf("it is %s (%s), settled %t", got.State, got.Reason, settled)
		}
	}
	if err := h.ledger.SetState(t.Context(), row+1, webhooks.NewVerdict("done", "", "", noon)); !errors.Is(err, webhooks.ErrUnknownEvent) {
		t.Errorf("verdict on an event that never was: %v", err)
	}
}
