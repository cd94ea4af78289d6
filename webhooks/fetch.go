package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stripe/stripe-go/v79"
)

const (
	// fetchVersion is what objects are asked for at: the newest that the decoder knows.
	// At an older one a subscription of mixed intervals shows one period for all.
	fetchVersion = "2026-09-30.endive"
	// chargeVersion is the last at which a charge names its invoice.
	chargeVersion = "2024-06-20"
	// DefaultAPITimeout is how long one call of the API may take.
	DefaultAPITimeout = 5 * time.Second
	pageSize          = "100"
)

// APIOptions are the settings of an API.
type APIOptions struct {
	// Key is the secret or restricted key. It needs to read customers, charges,
	// disputes, events, invoices, subscriptions and Checkout sessions.
	Key string
	// URL is Stripe's unless set.
	URL string
	// Timeout is DefaultAPITimeout if 0.
	Timeout time.Duration
}

// API asks Stripe for objects as they are now. Nothing is ever written. Each call is
// made once: whoever needs the answer tries again later. It is safe for concurrent use.
type API struct {
	backend stripe.Backend
	key     string
	client  *http.Client
	tally   apiTally
}

type apiTally struct{ calls, limited, failed atomic.Int64 }

// APIStats are what an API has done so far.
type APIStats struct {
	// Calls are all calls, Limited those that were refused for their rate (429), and
	// Failed those that failed otherwise.
	Calls, Limited, Failed int64
}

// NewAPI makes an API. The error names HEADROOM_STRIPE_API_KEY or
// HEADROOM_STRIPE_API_URL, and contains no key.
func NewAPI(o APIOptions) (*API, error) {
	if o.Key == "" || strings.TrimSpace(o.Key) != o.Key {
		return nil, fmt.Errorf("HEADROOM_STRIPE_API_KEY: must be a key without spaces around it")
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultAPITimeout
	}
	client := &http.Client{Timeout: o.Timeout, Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute,
	}}
	config := &stripe.BackendConfig{
		HTTPClient: client, MaxNetworkRetries: stripe.Int64(0), EnableTelemetry: stripe.Bool(false),
		LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull},
	}
	if o.URL != "" {
		base, err := url.Parse(o.URL)
		if err != nil || base.Host == "" {
			return nil, fmt.Errorf("HEADROOM_STRIPE_API_URL %q: must be the URL of an API, such as https://api.stripe.com", o.URL)
		}
		config.URL = stripe.String(strings.TrimSuffix(o.URL, "/"))
	}
	return &API{backend: stripe.GetBackendWithConfig(stripe.APIBackend, config), key: o.Key, client: client}, nil
}

// Stats are what was done so far.
func (a *API) Stats() APIStats {
	return APIStats{Calls: a.tally.calls.Load(), Limited: a.tally.limited.Load(), Failed: a.tally.failed.Load()}
}

// Close lets go of idle connections.
func (a *API) Close() { a.client.CloseIdleConnections() }

// serves reports whether the key is of the world: one that does not say is taken for
// either.
func (a *API) serves(livemode bool) bool {
	switch {
	case a == nil:
		return false
	case strings.HasPrefix(a.key, "sk_live_"), strings.HasPrefix(a.key, "rk_live_"):
		return livemode
	case strings.HasPrefix(a.key, "sk_test_"), strings.HasPrefix(a.key, "rk_test_"):
		return !livemode
	default:
		return true
	}
}

// call is a question to the API.
type call struct {
	// account is the connected account, empty for one's own.
	account string
	path    string
	query   url.Values
	// version is fetchVersion if empty.
	version string
}

// reply keeps what the client would throw away.
type reply struct{ stripe.APIResource }

// get asks once and returns the answer as it came. An error is an *apiError.
func (a *API) get(ctx context.Context, c call) (json.RawMessage, error) {
	version := c.version
	if version == "" {
		version = fetchVersion
	}
	params := &stripe.Params{Context: ctx, Headers: http.Header{"Stripe-Version": {version}}}
	if c.account != "" {
		params.StripeAccount = stripe.String(c.account)
	}
	path := c.path
	if len(c.query) > 0 {
		path += "?" + c.query.Encode()
	}
	a.tally.calls.Add(1)
	var got reply
	if err := a.backend.CallRaw(http.MethodGet, path, a.key, nil, params, &got); err != nil {
		return nil, a.fault(c, err)
	}
	return got.LastResponse.RawJSON, nil
}

// list asks for all pages of a list, newest first, and hands over each object until
// that says to stop. An error is an *apiError, an *undecodable or the caller's.
func (a *API) list(ctx context.Context, c call, each func(json.RawMessage) (more bool, err error)) error {
	ask := func(c call) (listPage, error) { return a.page(ctx, c) }
	return walk(c, ask, func(page listPage) (bool, error) {
		for _, object := range page.objects {
			if more, err := each(object); err != nil || !more {
				return false, err
			}
		}
		return true, nil
	})
}

// walk asks for one page of a list after the other until there is none, or the caller
// says to stop.
func walk(c call, ask func(call) (listPage, error), each func(listPage) (more bool, err error)) error {
	query := url.Values{"limit": {pageSize}}
	maps.Copy(query, c.query)
	c.query = query
	for {
		page, err := ask(c)
		if err != nil {
			return err
		}
		if more, err := each(page); err != nil || !more || !page.more || page.last == "" {
			return err
		}
		query.Set("starting_after", page.last)
	}
}

func (a *API) page(ctx context.Context, c call) (listPage, error) {
	raw, err := a.get(ctx, c)
	if err != nil {
		return listPage{}, err
	}
	return parsePage(c.path, raw)
}

// listPage is one answer of a list.
type listPage struct {
	objects []json.RawMessage
	last    string
	more    bool
}

func parsePage(path string, raw json.RawMessage) (listPage, error) {
	o, err := parseObject(path, raw)
	if err != nil {
		return listPage{}, err
	}
	page := listPage{more: o.isTrue("has_more")}
	if err := json.Unmarshal(o.fields["data"], &page.objects); err != nil {
		return listPage{}, &undecodable{o.at("data"), "is no list"}
	}
	if n := len(page.objects); n > 0 {
		last, err := parseObject(o.at("data"), page.objects[n-1])
		if err != nil {
			return listPage{}, err
		}
		page.last = last.text("id")
	}
	return page, nil
}
