package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headroomhq/headroom/webhooks/stripetest"
)

// Whatever is sent to the door of a serving process, it gets an answer that Stripe or a
// stranger is to have, and what comes behind it is served.
func TestServeAnswersWhateverIsPosted(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	s := a.serve()
	s.awaitStatus(http.StatusOK)
	now := time.Now()
	signed := func(body string, at time.Time, secrets ...string) string {
		return stripetest.Sign([]byte(body), at, secrets...)
	}
	event := `{"id":"evt_hostile","object":"event","type":"customer.subscription.updated","livemode":true,"created":1795000000,"data":{"object":%s}}`
	large := `{"id":"evt_large","pad":"` + strings.Repeat("x", 1<<20) + `"}`
	deep := strings.Repeat(`[`, 20_000) + strings.Repeat(`]`, 20_000)
	for name, c := range map[string]struct {
		body, signature string
		want            int
	}{
		"no signature":         {body: `{}`, want: http.StatusBadRequest},
		"garbage as signature": {body: `{}`, signature: "t=,v1=,,==;", want: http.StatusBadRequest},
		"another secret":       {body: `{}`, signature: signed(`{}`, now, "whsec_another"), want: http.StatusBadRequest},
		"the empty secret":     {body: `{}`, signature: signed(`{}`, now, ""), want: http.StatusBadRequest},
		"too old":              {body: `{}`, signature: signed(`{}`, now.Add(-301*time.Second), stripeSecret), want: http.StatusBadRequest},
		"far ahead":            {body: `{}`, signature: signed(`{}`, now.Add(time.Hour), stripeSecret), want: http.StatusBadRequest},
		"a time beyond all":    {body: `{}`, signature: "t=9223372036854775807,v1=00", want: http.StatusBadRequest},
		"two signatures":       {body: `{}`, signature: signed(`{}`, now, "whsec_another", stripeSecret), want: http.StatusOK},
		"the other secret":     {body: `[]`, signature: signed(`[]`, now, "whsec_old"), want: http.StatusOK},
		"too large":            {body: large, signature: signed(large, now, stripeSecret), want: http.StatusRequestEntityTooLarge},
		"nothing":              {signature: signed(``, now, stripeSecret), want: http.StatusOK},
		"deep":                 {body: deep, signature: signed(deep, now, stripeSecret), want: http.StatusOK},
		"thin":                 {body: `{"id":"evt_thin","object":"v2.core.event"}`, signature: signed(`{"id":"evt_thin","object":"v2.core.event"}`, now, stripeSecret), want: http.StatusOK},
		"no object":            {body: fmt.Sprintf(event, `null`), signature: signed(fmt.Sprintf(event, `null`), now, stripeSecret), want: http.StatusOK},
		"an id of another kind": {
			body: fmt.Sprintf(event, `{"id":{"a":[1]}}`), signature: signed(fmt.Sprintf(event, `{"id":{"a":[1]}}`), now, stripeSecret), want: http.StatusOK,
		},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.addr+"/webhooks/stripe", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Stripe-Signature", c.signature)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		said, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != c.want || strings.Contains(string(said), stripeSecret) {
			t.Errorf("%s: answered %d %s, want %d", name, answer.StatusCode, said, c.want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	a.subscriber("ws_after")
	a.flush(a.sends(s))
}
