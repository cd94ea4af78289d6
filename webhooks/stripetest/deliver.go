package stripetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// EndpointOptions are the settings of a webhook endpoint.
type EndpointOptions struct {
	URL string
	// Secrets sign each delivery, in this order.
	Secrets []string
	// Version is that of the bodies, the account's if not given; VersionOf decides for
	// each event and wins.
	Version   Version
	VersionOf func(Event) Version
	// Wants decides which events are sent; all if not given.
	Wants func(Event) bool
	// Order is given what is to be sent and returns it as it is sent: in another order,
	// with some twice, or without some.
	Order func([]Event) []Event
	// Now is the time of the signature, time.Now if not given.
	Now func() time.Time
	// Client is http.DefaultClient if not given.
	Client *http.Client
}

// Endpoint sends events to a URL, as Stripe sends them to a webhook endpoint.
type Endpoint struct {
	stripe  *Stripe
	options EndpointOptions

	mu   sync.Mutex
	next int
	owed []Event
}

// Delivery is one attempt to send an event.
type Delivery struct {
	Event Event
	// Status and Answer are what came back, Err why nothing did.
	Status int
	Answer string
	Err    error
}

// OK reports whether Stripe would take it for delivered.
func (d Delivery) OK() bool { return d.Err == nil && d.Status >= 200 && d.Status < 300 }

// NewEndpoint makes an endpoint that has been sent nothing: its first Flush sends all
// events since the beginning.
func (s *Stripe) NewEndpoint(o EndpointOptions) *Endpoint {
	o.Version = orElse(o.Version, s.options.Version)
	if o.Client == nil {
		o.Client = http.DefaultClient
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Endpoint{stripe: s, options: o}
}

// Flush sends what is new, and what failed before, one after the other, and returns the
// attempts. What is not answered with a 2xx is sent again by the next Flush.
func (e *Endpoint) Flush(ctx context.Context) []Delivery {
	e.mu.Lock()
	defer e.mu.Unlock()
	fresh := e.stripe.EventsFrom(e.next)
	e.next += len(fresh)
	events := e.owed
	for _, event := range fresh {
		if e.options.Wants == nil || e.options.Wants(event) {
			events = append(events, event)
		}
	}
	if e.options.Order != nil {
		events = e.options.Order(slices.Clone(events))
	}
	e.owed = nil
	made := e.Send(ctx, events...)
	for _, delivery := range made {
		if !delivery.OK() {
			e.owed = append(e.owed, delivery.Event)
		}
	}
	return made
}

// Forget takes everything up to now as sent.
func (e *Endpoint) Forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.next += len(e.stripe.EventsFrom(e.next))
	e.owed = nil
}

// Send sends these events once, whatever was sent before.
func (e *Endpoint) Send(ctx context.Context, events ...Event) []Delivery {
	made := make([]Delivery, 0, len(events))
	for _, event := range events {
		made = append(made, e.send(ctx, event))
	}
	return made
}

func (e *Endpoint) send(ctx context.Context, event Event) Delivery {
	request, err := e.Request(ctx, event)
	if err != nil {
		return Delivery{Event: event, Err: err}
	}
	response, err := e.options.Client.Do(request)
	if err != nil {
		return Delivery{Event: event, Err: fmt.Errorf("deliver %s: %w", event.ID, err)}
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	if err != nil {
		return Delivery{Event: event, Err: fmt.Errorf("read the answer to %s: %w", event.ID, err)}
	}
	return Delivery{Event: event, Status: response.StatusCode, Answer: string(answer)}
}

// Request is the call that sends an event, signed, for those who send it themselves.
func (e *Endpoint) Request(ctx context.Context, event Event) (*http.Request, error) {
	version := e.options.Version
	if e.options.VersionOf != nil {
		version = e.options.VersionOf(event)
	}
	body := event.Body(version)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.options.URL, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make the delivery of %s: %w", event.ID, err)
	}
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	request.Header.Set("User-Agent", "Stripe/1.0 (+https://stripe.com/docs/webhooks)")
	request.Header.Set("Stripe-Signature", Sign(body, e.options.Now(), e.options.Secrets...))
	return request, nil
}
