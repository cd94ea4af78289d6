package webhooks_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
	"github.com/headroomhq/headroom/webhooks"
	"github.com/headroomhq/headroom/webhooks/stripetest"
)

// office is a fake Stripe, and an installation that may or may not hear of it.
type office struct {
	testing.TB
	stripe   *stripetest.Stripe
	endpoint *stripetest.Endpoint
	handler  http.Handler
	api      *webhooks.API
	ledger   *webhooks.Ledger
	store    *subscriptions.Store
	pool     *pgxpool.Pool
	pro, big stripetest.Price
}

func newOffice(t testing.TB) *office {
	t.Helper()
	return newOfficeAt(t, time.Now().Add(-time.Hour))
}

// newOfficeAt has the fake's clock begin at the instant.
func newOfficeAt(t testing.TB, start time.Time) *office {
	t.Helper()
	pool := schematest.Postgres(t)
	o := &office{TB: t, pool: pool, store: subscriptions.NewStore(pool, subscriptions.StoreOptions{})}
	o.stripe = stripetest.New(stripetest.Options{Start: start})
	o.pro = o.stripe.CreatePrice(stripetest.PriceParams{ID: "price_pro", Amount: 2500})
	o.big = o.stripe.CreatePrice(stripetest.PriceParams{ID: "price_big", Amount: 9900})
	o.handler = o.stripe.Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { o.handler.ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	var err error
	if o.api, err = webhooks.NewAPI(webhooks.APIOptions{Key: o.stripe.Key(true), URL: server.URL}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.api.Close)
	o.applyCatalog("price_pro", "price_big")
	o.ledger = o.listen(pool)
	return o
}

// listen makes an endpoint of an installation on the pool, whose ledger it returns.
func (o *office) listen(pool *pgxpool.Pool) *webhooks.Ledger {
	o.Helper()
	ledger, err := webhooks.NewLedger(pool, webhooks.ModeLive)
	if err != nil {
		o.Fatal(err)
	}
	door, err := webhooks.NewDoor(webhooks.DoorOptions{
		Secrets: []string{newSecret}, Ledger: ledger, Log: slog.New(slog.DiscardHandler), Now: time.Now,
	})
	if err != nil {
		o.Fatal(err)
	}
	server := httptest.NewServer(door)
	o.Cleanup(server.Close)
	o.endpoint = o.stripe.NewEndpoint(stripetest.EndpointOptions{
		URL: server.URL, Secrets: []string{newSecret}, Client: server.Client(),
	})
	return ledger
}

func (o *office) applyCatalog(pro, big string) {
	o.Helper()
	text := &strings.Builder{}
	fmt.Fprintln(text, "plans:")
	for i, p := range []struct{ key, price string }{{"free", ""}, {"pro", pro}, {"big", big}} {
		fmt.Fprintf(text, "  %s:\n    rank: %d\n    default: %v\n", p.key, i, i == 0)
		if p.price != "" {
			fmt.Fprintf(text, "    stripe_prices: [%s]\n", p.price)
		}
		fmt.Fprintln(text, "    limits:")
		for _, name := range schemas.LimitNames {
			fmt.Fprintf(text, "      %s: unlimited\n", name)
		}
	}
	catalog, err := subscriptions.ParseCatalog("catalog.yaml", []byte(text.String()))
	if err != nil {
		o.Fatal(err)
	}
	if _, err := o.store.ApplyCatalog(o.Context(), catalog); err != nil {
		o.Fatal(err)
	}
}

// subscriber is one that subscribes to pro for a workspace; without one nothing says
// whose it is.
func (o *office) subscriber(workspace string) stripetest.Subscription {
	o.Helper()
	return o.subscriberOf(workspace, stripetest.CustomerParams{Livemode: true})
}

func (o *office) subscriberOf(workspace string, p stripetest.CustomerParams) stripetest.Subscription {
	o.Helper()
	params := stripetest.SubscribeParams{Customer: o.stripe.CreateCustomer(p).ID, Price: o.pro.ID}
	if workspace != "" {
		params.Metadata = map[string]string{"workspace_id": workspace}
	}
	sub, err := o.stripe.Subscribe(params)
	if err != nil {
		o.Fatal(err)
	}
	return sub
}

// work runs a worker until the returned function is called, at the latest until the test
// ends.
func (o *office) work() (stop func()) {
	o.Helper()
	w := webhooks.NewWorker(webhooks.WorkerOptions{
		Ledger: o.ledger, Store: o.store, API: o.api, Pause: 5 * time.Millisecond,
	})
	return o.runs(w.Run)
}

func (o *office) runs(part func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- part(ctx); close(ended) }()
	stop = func() {
		cancel()
		if err := <-ended; err != nil {
			o.Errorf("a part ended with an error: %v", err)
		}
	}
	o.Cleanup(stop)
	return stop
}

func (o *office) syncer() *webhooks.Sync {
	return webhooks.NewSync(webhooks.SyncOptions{
		Ledger: o.ledger, Store: o.store, API: o.api, Rate: -1, Young: -1, Log: schematest.Logger(o),
	})
}

func (o *office) sweeper() *webhooks.Sweep {
	return webhooks.NewSweep(webhooks.SweepOptions{Ledger: o.ledger, API: o.api, Young: -1, Log: schematest.Logger(o)})
}

func (o *office) sync() webhooks.SyncReport {
	o.Helper()
	report, err := o.syncer().Once(o.Context())
	if err != nil {
		o.Fatal(err)
	}
	return report
}

func (o *office) sweep() webhooks.SweepReport {
	o.Helper()
	report, err := o.sweeper().Once(o.Context())
	if err != nil {
		o.Fatal(err)
	}
	return report
}

// flush delivers what happened, and expects it to be taken.
func (o *office) flush() {
	o.Helper()
	for _, d := range o.endpoint.Flush(o.Context()) {
		if !d.OK() {
			o.Fatalf("%s was answered %d %s, %v", d.Event.Type, d.Status, d.Answer, d.Err)
		}
	}
}

// idle waits until nothing is left to look up.
func (o *office) idle() {
	o.Helper()
	o.eventually("every look-up is over", func() bool { return settled(o, o.pool) })
}

func (o *office) eventually(what string, is func() bool) {
	o.Helper()
	if !eventually(is) {
		o.Fatalf("not in time: %s", what)
	}
}

// newestRow is what matters of the newest row of a workspace, empty without any.
type newestRow struct {
	Workspace, Source, Plan, Status, Payment string
	Start, End                               time.Time
	Closed                                   bool
}

func (o *office) rows() map[string]newestRow {
	o.Helper()
	found, err := o.pool.Query(o.Context(), `SELECT DISTINCT ON (source_id) workspace_id, source_id, plan_key, status, payment_state,
		period_start, period_end, closed_at IS NOT NULL FROM subscriptions ORDER BY source_id, period_start DESC`)
	if err != nil {
		o.Fatal(err)
	}
	list, err := pgx.CollectRows(found, pgx.RowToStructByPos[newestRow])
	if err != nil {
		o.Fatal(err)
	}
	rows := make(map[string]newestRow, len(list))
	for _, r := range list {
		r.Start, r.End = r.Start.UTC(), r.End.UTC()
		rows[r.Source] = r
	}
	return rows
}
