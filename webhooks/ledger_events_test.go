package webhooks_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/webhooks"
)

func TestEventsAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	h := newHouse(t, webhooks.ModeLive)
	for i := range 5 {
		h.deliver(t, event(fmt.Sprintf("evt_%d", i), "customer.subscription.updated", aSubscription))
	}
	h.deliver(t, event("evt_price", "price.updated", "{}"))
	var pages [][]string
	for before := int64(0); ; {
		page, err := h.ledger.Events(t.Context(), webhooks.EventFilter{State: webhooks.StateReceived, Limit: 2, Before: before})
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		var ids []string
		for _, e := range page {
			ids, before = append(ids, e.ID), e.Row
		}
		pages = append(pages, ids)
	}
	if diff := cmp.Diff([][]string{{"evt_4", "evt_3"}, {"evt_2", "evt_1"}, {"evt_0"}}, pages); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	all, err := h.ledger.Events(t.Context(), webhooks.EventFilter{})
	if err != nil || len(all) != 6 || all[0].ID != "evt_price" {
		t.Errorf("the listing has %d events (%v)", len(all), err)
	}
	text, err := json.Marshal(all[1])
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"id":"evt_4","type":"customer.subscription.updated","api_version":"2024-06-20","account":"","livemode":true,` +
		`"created":"2026-11-18T11:06:40Z","received_at":"2026-11-20T12:00:00Z","state":"received","reason":"","attempts":0,` +
		`"workspace_id":null,"source_id":"sub_acme","deliveries":1}`
	if string(text) != want {
		t.Errorf("as JSON it is\n%s, want\n%s", text, want)
	}
}

func TestCountsTellTheOldestOfEachState(t *testing.T) {
	t.Parallel()
	h := newHouse(t, webhooks.ModeLive)
	if counts, err := h.ledger.Counts(t.Context()); err != nil || len(counts) != 0 {
		t.Errorf("an empty ledger counts %v (%v)", counts, err)
	}
	for i, body := range []string{"?", event("evt_1", "invoice.paid", `{"id":"in_1","subscription":"sub_acme"}`), "??"} {
		if _, err := h.ledger.RecordAs(t.Context(), "webhook", []byte(body), noon.Add(time.Duration(i)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	counts, err := h.ledger.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]webhooks.StateCount{
		{State: "parked", Count: 2, Oldest: noon}, {State: "received", Count: 1, Oldest: noon.Add(time.Minute)},
	}, counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}
