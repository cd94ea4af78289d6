package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/subscriptions"
	"github.com/headroomhq/headroom/webhooks"
	"github.com/headroomhq/headroom/webhooks/stripetest"
)

// centsPerRank makes up what a plan costs.
const centsPerRank = 100

// devStripe is a fake Stripe on a loopback address, with the prices of a catalog. Every
// workspace subscribes on a test clock of its own, so that its time can be moved.
type devStripe struct {
	stripe   *stripetest.Stripe
	listener net.Listener
	server   *http.Server
	served   chan struct{}
	secret   string
	// prices are the first price of each plan that has one, by rank.
	prices []planPrice

	// mu lets one action be done after the other, and none before serve is ready.
	mu sync.Mutex
	// endpoint, ledger and pool are there once it is.
	endpoint *stripetest.Endpoint
	ledger   *webhooks.Ledger
	pool     *pgxpool.Pool
}

// planPrice is a plan that can be bought.
type planPrice struct {
	plan, price string
	rank        int32
}

func newDevStripe(ctx context.Context, catalog subscriptions.Catalog) (*devStripe, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the fake stripe: %w", err)
	}
	d := &devStripe{
		stripe: stripetest.New(stripetest.Options{Start: time.Now()}), listener: listener,
		secret: "whsec_" + strings.ToLower(rand.Text()), served: make(chan struct{}),
	}
	for _, plan := range catalog.Plans {
		for i, price := range plan.StripePrices {
			interval := stripetest.Month
			if strings.Contains(price, "year") {
				interval = stripetest.Year
			}
			d.stripe.CreatePrice(stripetest.PriceParams{ID: price, Amount: max(int64(plan.Rank)*centsPerRank, centsPerRank), Interval: interval})
			if i == 0 {
				d.prices = append(d.prices, planPrice{plan.Key, price, plan.Rank})
			}
		}
	}
	slices.SortFunc(d.prices, func(a, b planPrice) int { return cmp.Compare(a.rank, b.rank) })
	mux := http.NewServeMux()
	mux.Handle("/v1/", d.stripe.Handler())
	mux.HandleFunc("POST /dev/stripe/{action}/{workspace}", d.serveAction)
	d.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		defer close(d.served)
		_ = d.server.Serve(listener) // until it is closed
	}()
	return d, nil
}

func (d *devStripe) url() string { return "http://" + d.listener.Addr().String() }

// settle has serve follow it.
func (d *devStripe) settle(config *Config) {
	config.StripeWebhookSecrets = NewSecret(d.secret)
	config.StripeAPIKey, config.StripeAPIURL = NewSecret(d.stripe.Key(false)), d.url()
	config.StripeMode = string(webhooks.ModeTest)
}

// deliverTo begins to deliver, to serve at the address.
func (d *devStripe) deliverTo(ctx context.Context, config Config, addr string) (err error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("read the address of serve: %w", err)
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pool, err = newPostgres(ctx, config); err != nil {
		return err
	}
	if d.ledger, err = webhooks.NewLedger(d.pool, webhooks.ModeTest); err != nil {
		return err
	}
	d.endpoint = d.stripe.NewEndpoint(stripetest.EndpointOptions{
		URL: "http://" + net.JoinHostPort(host, port) + "/webhooks/stripe", Secrets: []string{d.secret},
		Client: &http.Client{Timeout: devPatience, Transport: &http.Transport{DisableKeepAlives: true}},
		Wants:  func(e stripetest.Event) bool { return slices.Contains(webhooks.EventTypes(), e.Type) },
	})
	return nil
}

func (d *devStripe) close() {
	_ = d.server.Close() // those who ask hear that it has gone
	<-d.served
	if d.pool != nil {
		d.pool.Close()
	}
}

// settled waits until what was delivered is looked up.
func (d *devStripe) settled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, devPatience)
	defer cancel()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		is, err := d.ledger.Concerns(ctx, now())
		if err != nil {
			return err
		}
		if is.Received+is.Backlog == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.New("headroom did not look up in time what the fake stripe told it")
		case <-look.C:
		}
	}
}
