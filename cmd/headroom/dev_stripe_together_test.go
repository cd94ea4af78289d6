package main

import (
	"net/http"
	"sync"
	"testing"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

// Whoever presses twice, and before dev is ready, subscribes once.
func TestDevStripeActsOnceAtATime(t *testing.T) {
	t.Parallel()
	d, err := newDevStripe(t.Context(), subscriptions.Catalog{Plans: []subscriptions.Plan{
		{Key: "pro", Rank: 1, StripePrices: []string{"price_pro"}, Features: map[string]schemas.Limit{}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	var presses sync.WaitGroup
	for range 4 {
		presses.Go(func() {
			for {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.url()+"/dev/stripe/subscribe/acme", nil)
				if err != nil {
					t.Error(err)
					return
				}
				client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
				response, err := client.Do(request)
				if err != nil {
					t.Error(err)
					return
				}
				done, err := readDone(response)
				_ = response.Body.Close()
				if len(done.Refused) > 0 || err != nil && err.Error() != "headroom is not ready yet: try again" {
					return
				}
			}
		})
	}
	// Nobody is there to deliver to: what was done is told all the same.
	if err := d.deliverTo(t.Context(), Config{PostgresURL: NewSecret(schematest.PostgresURL(t))}, "127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	presses.Wait()
	if n := len(d.stripe.Subscriptions()); n != 1 {
		t.Errorf("the workspace has %d subscriptions", n)
	}
}
