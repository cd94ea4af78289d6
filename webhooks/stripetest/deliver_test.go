package stripetest_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v79/webhook"

	"github.com/headroomhq/headroom/webhooks/stripetest"
)

// receiver is an endpoint that verifies with the SDK and keeps what came.
type receiver struct {
	mu     sync.Mutex
	secret string
	seen   []string
	broken int
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		http.Error(w, "body", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	event, err := webhook.ConstructEvent(body, request.Header.Get("Stripe-Signature"), r.secret)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case r.broken > 0:
		r.broken--
		http.Error(w, "away", http.StatusServiceUnavailable)
	default:
		r.seen = append(r.seen, event.ID)
	}
}

func idsOfEvents(events []stripetest.Event) []string {
	var ids []string
	for _, e := range events {
		ids = append(ids, e.ID)
	}
	return ids
}

func TestEndpointSendsWhatIsNew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	r := &receiver{secret: "whsec_new", broken: 2}
	server := httptest.NewServer(r)
	defer server.Close()
	endpoint := w.NewEndpoint(stripetest.EndpointOptions{
		URL: server.URL, Secrets: []string{"whsec_old", "whsec_new"}, Client: server.Client(),
		Wants: func(e stripetest.Event) bool { return e.Object == "subscription" },
	})
	endpoint.Forget()
	n := w.count()
	w.subscribe(stripetest.SubscribeParams{})
	made := endpoint.Flush(t.Context())
	same(t, "both failed", []bool{made[0].OK(), made[1].OK()}, []bool{false, false})
	same(t, "status", made[0].Status, http.StatusServiceUnavailable)
	w.Advance(32 * day)
	endpoint.Flush(t.Context())
	var want []string
	for _, e := range w.EventsFrom(n) {
		if e.Object == "subscription" {
			want = append(want, e.ID)
		}
	}
	same(t, "seen", r.seen, want)
	same(t, "nothing is left", len(endpoint.Flush(t.Context())), 0)
	endpoint.Send(t.Context(), made[0].Event)
	same(t, "sent again", r.seen[len(r.seen)-1], want[0])
}

func TestEndpointReordersAndChoosesVersions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	scenario(w)
	var got []string
	versions := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		e := parse(t, body)
		got = append(got, e["id"].(string))
		versions[e["api_version"].(string)] = true
	}))
	defer server.Close()
	var want []string
	random := rand.New(rand.NewPCG(1, 2))
	endpoint := w.NewEndpoint(stripetest.EndpointOptions{
		URL: server.URL, Secrets: []string{"whsec"}, Client: server.Client(),
		VersionOf: func(e stripetest.Event) stripetest.Version {
			all := stripetest.Versions()
			return all[int(e.ID[len(e.ID)-1])%len(all)]
		},
		Order: func(events []stripetest.Event) []stripetest.Event {
			events = stripetest.Duplicated(stripetest.Shuffled(events, random), 0.3, random)
			want = idsOfEvents(events)
			return events
		},
	})
	endpoint.Flush(t.Context())
	same(t, "order", got, want)
	same(t, "versions", len(versions), len(stripetest.Versions()))
	if len(want) <= w.count() {
		t.Error("nothing was sent twice")
	}
}

func TestUnreachableEndpointOwesItsEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	server := httptest.NewServer(http.NotFoundHandler())
	endpoint := w.NewEndpoint(stripetest.EndpointOptions{URL: server.URL, Secrets: []string{"s"}, Client: server.Client()})
	server.Close()
	made := endpoint.Flush(t.Context())
	same(t, "attempts", len(made), w.count())
	if made[0].Err == nil || made[0].OK() {
		t.Error("a closed endpoint answered")
	}
	same(t, "again", len(endpoint.Flush(t.Context())), w.count())
}

func TestSignatureHoldsForItsSecretAndTime(t *testing.T) {
	t.Parallel()
	body := []byte(`{"id":"evt_1"}`)
	cases := []struct {
		name    string
		at      time.Time
		secrets []string
		want    error
	}{
		{"one", time.Now(), []string{"whsec"}, nil},
		{"rolled", time.Now(), []string{"whsec", "whsec_new"}, nil},
		{"other", time.Now(), []string{"whsec_new"}, webhook.ErrNoValidSignature},
		{"none", time.Now(), nil, webhook.ErrNoValidSignature},
		{"old", time.Now().Add(-301 * time.Second), []string{"whsec"}, webhook.ErrTooOld},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if err := webhook.ValidatePayload(body, stripetest.Sign(body, c.at, c.secrets...), "whsec"); !errors.Is(err, c.want) {
				t.Errorf("verified with %v, want %v", err, c.want)
			}
		})
	}
}

func TestOrdersKeepTheEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stripetest.Options{})
	scenario(w)
	events := w.Events()
	random := rand.New(rand.NewPCG(7, 7))
	sorted := func(events []stripetest.Event) []string {
		ids := idsOfEvents(events)
		slices.Sort(ids)
		return ids
	}
	shuffled, late := stripetest.Shuffled(events, random), stripetest.Delayed(events, 5, random)
	same(t, "shuffled", sorted(shuffled), sorted(events))
	same(t, "delayed", sorted(late), sorted(events))
	if slices.Equal(idsOfEvents(shuffled), idsOfEvents(events)) || slices.Equal(idsOfEvents(late), idsOfEvents(events)) {
		t.Error("the order stayed")
	}
	for at, e := range late {
		if was := slices.Index(idsOfEvents(events), e.ID); was-at > 5 || at-was > 5 {
			t.Errorf("%s moved from %d to %d", e.ID, was, at)
		}
	}
	twice := stripetest.Duplicated(events, 1, random)
	same(t, "duplicated", []any{len(twice), slices.Compact(sorted(twice))}, []any{2 * len(events), sorted(events)})
	same(t, "dropped", []int{len(stripetest.Dropped(events, 0, random)), len(stripetest.Dropped(events, 1, random))}, []int{len(events), 0})
}
