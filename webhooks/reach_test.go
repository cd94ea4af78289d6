package webhooks_test

import (
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/headroomhq/headroom/webhooks"
	"github.com/headroomhq/headroom/webhooks/stripetest"
)

func TestReachTellsARefusedKeyFromASilence(t *testing.T) {
	t.Parallel()
	stripe := stripetest.New(stripetest.Options{})
	server := httptest.NewServer(stripe.Handler())
	t.Cleanup(server.Close)
	for name, test := range map[string]struct {
		key, url         string
		reached, refused bool
	}{
		"answers": {stripe.Key(true), server.URL, true, false},
		"refuses": {"sk_live_revoked", server.URL, false, true},
		"is away": {stripe.Key(true), "http://127.0.0.1:9", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, err := webhooks.NewAPI(webhooks.APIOptions{Key: test.key, URL: test.url})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(api.Close)
			if err = api.Reach(t.Context()); (err == nil) != test.reached || errors.Is(err, webhooks.ErrKeyRefused) != test.refused {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
