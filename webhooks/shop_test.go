package webhooks_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
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

const (
	aDay = 24 * time.Hour
	// settling is how long a test waits for what must happen.
	settling = 30 * time.Second
)

// shopCatalog is the plans of these tests, with further prices of pro.
func shopCatalog(more ...string) subscriptions.Catalog {
	plan := func(key string, rank int32, prices ...string) subscriptions.Plan {
		p := subscriptions.Plan{Key: key, Default: rank == 0, Rank: rank, StripePrices: prices, Features: map[string]schemas.Limit{}}
		for _, name := range schemas.LimitNames {
			*p.Limits.Named(name) = schemas.LimitFrom(nil)
		}
		return p
	}
	return subscriptions.Catalog{Plans: []subscriptions.Plan{
		plan("free", 0), plan("basic", 1, "price_basic", "price_basic_year"),
		plan("pro", 2, append([]string{"price_pro", "price_pro_year"}, more...)...), plan("max", 3, "price_max"),
	}}
}

// rankOf is the catalog's ranks, for the oracle.
func rankOf(price string) int {
	return map[string]int{"basic": 1, "pro": 2, "max": 3}[planOf(price)] - 1
}

func planOf(price string) string {
	return map[string]string{
		"price_basic": "basic", "price_basic_year": "basic", "price_pro": "pro", "price_pro_year": "pro", "price_max": "max",
	}[price]
}

// site is a database with a catalog, and what was started on it.
type site struct {
	testing.TB
	pool   *pgxpool.Pool
	store  *subscriptions.Store
	ledger *webhooks.Ledger
	policy subscriptions.Policy
	log    *journal
}

func newSite(t testing.TB, policy subscriptions.Policy) *site {
	t.Helper()
	return siteOn(t, schematest.Postgres(t), policy)
}

func siteOn(t testing.TB, pool *pgxpool.Pool, policy subscriptions.Policy) *site {
	t.Helper()
	s := &site{TB: t, pool: pool, policy: policy, log: new(journal)}
	s.store = subscriptions.NewStore(pool, subscriptions.StoreOptions{Policy: policy})
	_, err := s.store.ApplyCatalog(t.Context(), shopCatalog())
	s.ok(err)
	s.ledger, err = webhooks.NewLedger(pool, webhooks.ModeAny)
	s.ok(err)
	return s
}

// of is the site for a part of its test. What another part left is settled.
func (s *site) of(t testing.TB) *site {
	t.Helper()
	part := *s
	part.TB = t
	return &part
}

func (s *site) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// shop is a fake Stripe that delivers to a site.
type shop struct {
	*site
	*stripetest.Stripe
	api      *webhooks.API
	workers  []*webhooks.Worker
	door     http.Handler
	endpoint *stripetest.Endpoint
	clock    string
	customer string
	// workspace is the one that subscriptions name unless they are told otherwise.
	workspace string
}

type shopOptions struct {
	stripe stripetest.Options
	// keyless folds payloads; workers is 1 if 0, and none if it is idle.
	keyless bool
	workers int
	idle    bool
	live    bool
	// present lives by the account's clock instead of one of a test.
	present bool
	account string
	pause   time.Duration
	version stripetest.Version
	// lease is the worker's own if 0.
	lease time.Duration
}

// open starts workers and a door. The customer lives by a test clock, so that nothing
// depends on when the test runs.
func (s *site) open(o shopOptions) *shop {
	s.Helper()
	if o.stripe.Start.IsZero() {
		o.stripe.Start = time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC)
	}
	sh := &shop{site: s, Stripe: stripetest.New(o.stripe), workspace: fmt.Sprintf("acme_%d", o.stripe.Seed)}
	for id, amount := range map[string]int64{"price_basic": 1000, "price_pro": 2500, "price_max": 9900, "price_addon": 300} {
		sh.CreatePrice(stripetest.PriceParams{ID: id, Amount: amount})
	}
	for id, amount := range map[string]int64{"price_basic_year": 10_000, "price_pro_year": 25_000} {
		sh.CreatePrice(stripetest.PriceParams{ID: id, Amount: amount, Interval: stripetest.Year})
	}
	if !o.present {
		sh.clock = sh.CreateTestClock(o.stripe.Start)
	}
	sh.customer = sh.CreateCustomer(stripetest.CustomerParams{TestClock: sh.clock, Livemode: o.live, Account: o.account}).ID
	if !o.keyless {
		server := httptest.NewServer(sh.Handler())
		s.Cleanup(server.Close)
		var err error
		sh.api, err = webhooks.NewAPI(webhooks.APIOptions{Key: sh.Key(o.live), URL: server.URL})
		s.ok(err)
		s.Cleanup(sh.api.Close)
	}
	sh.receive(o)
	for n := 0; n < max(o.workers, 1) && !o.idle; n++ {
		sh.employ(o)
	}
	return sh
}

func (sh *shop) receive(o shopOptions) {
	sh.Helper()
	door, err := webhooks.NewDoor(webhooks.DoorOptions{
		Secrets: []string{newSecret}, Ledger: sh.ledger, Log: slog.New(slog.DiscardHandler), Now: time.Now,
	})
	sh.ok(err)
	sh.door = door
	sh.endpoint = sh.NewEndpoint(stripetest.EndpointOptions{
		URL: "http://headroom/webhooks/stripe", Secrets: []string{newSecret}, Version: o.version,
		Client: &http.Client{Transport: byHand{sh.door}},
	})
}

// byHand hands requests to a handler without a network.
type byHand struct{ http.Handler }

func (h byHand) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

// employ starts a worker with a ledger of its own, as another process has.
func (sh *shop) employ(o shopOptions) *webhooks.Worker {
	sh.Helper()
	return sh.employOn(o, func(*webhooks.Worker) {})
}

// employOn is employ of a worker that is prepared first.
func (sh *shop) employOn(o shopOptions, prepare func(*webhooks.Worker)) *webhooks.Worker {
	sh.Helper()
	ledger := sh.ledger
	if len(sh.workers) > 0 {
		var err error
		ledger, err = webhooks.NewLedger(sh.pool, webhooks.ModeAny)
		sh.ok(err)
	}
	if o.pause == 0 {
		o.pause = 5 * time.Millisecond
	}
	w := webhooks.NewWorker(webhooks.WorkerOptions{
		Ledger: ledger, Store: sh.store, API: sh.api, Pause: o.pause, Workers: 2, Log: slog.New(slog.NewJSONHandler(sh.log, nil)),
	})
	if o.lease > 0 {
		w.LeaseFor(o.lease)
	}
	prepare(w)
	sh.workers = append(sh.workers, w)
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := w.Run(ctx); err != nil {
			sh.Errorf("the worker ended with %v", err)
		}
	})
	sh.Cleanup(func() {
		cancel()
		done.Wait()
	})
	return w
}

// deliver sends all new events, in order, and waits until they are settled.
func (sh *shop) deliver() {
	sh.Helper()
	for _, d := range sh.endpoint.Flush(context.Background()) {
		if !d.OK() {
			sh.Fatalf("%s was answered %d, %v", d.Event.Type, d.Status, d.Err)
		}
	}
	sh.settle()
}

// settle waits until no look-up is due and no event without one.
func (s *site) settle() {
	s.Helper()
	s.await("all is settled", func() bool { return settled(s, s.pool) })
}

func settled(t testing.TB, pool *pgxpool.Pool) bool {
	t.Helper()
	return query[bool](t, pool, `SELECT NOT EXISTS (SELECT FROM stripe_sync_requests WHERE synced_generation < generation)
		AND NOT EXISTS (SELECT FROM stripe_events WHERE state = 'received')`)
}

func (s *site) await(what string, holds func() bool) {
	s.Helper()
	if !eventually(holds) {
		s.Fatalf("waited in vain until %s: %s", what, s.stuck())
	}
}

// eventually reports whether something holds before a test may not wait any more.
func eventually(holds func() bool) bool {
	deadline, tick := time.After(settling), time.NewTicker(2*time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			return false
		}
	}
	return true
}

func (s *site) stuck() string {
	return query[string](s, s.pool, `SELECT coalesce(string_agg(format('%s %s/%s after %s: %s', subscription_id, synced_generation, generation, attempts, last_error), '; '), '')
		|| (SELECT coalesce(string_agg(format('%s %s %s', type, state, reason), '; '), '') FROM stripe_events WHERE state = 'received')
		FROM stripe_sync_requests WHERE synced_generation < generation`)
}

// pass moves the clock that the customer lives by.
func (sh *shop) pass(d time.Duration) {
	sh.Helper()
	if sh.clock == "" {
		sh.Advance(d)
		return
	}
	sh.ok(sh.AdvanceTestClock(sh.clock, sh.today().Add(d)))
}

// today is where that clock stands.
func (sh *shop) today() time.Time {
	if sh.clock == "" {
		return sh.Now()
	}
	return clockNow(sh)
}

func (sh *shop) subscribe(p stripetest.SubscribeParams) stripetest.Subscription {
	sh.Helper()
	if p.Customer == "" {
		p.Customer = sh.customer
	}
	if p.Price == "" && len(p.Items) == 0 {
		p.Price = "price_pro"
	}
	if p.Metadata == nil {
		p.Metadata = map[string]string{"workspace_id": sh.workspace}
	}
	sub, err := sh.Subscribe(p)
	sh.ok(err)
	return sub
}

func (sh *shop) update(id string, p stripetest.UpdateParams) {
	sh.Helper()
	_, err := sh.Update(id, p)
	sh.ok(err)
}

func (sh *shop) pay(p stripetest.Payment) {
	sh.Helper()
	sh.ok(sh.SetPayment(sh.customer, p))
}

// rows are a subscription's periods, oldest first.
func (s *site) rows(id string) []row {
	s.Helper()
	found, err := s.pool.Query(context.Background(), `SELECT s.id::text, s.workspace_id, s.kind, s.status, s.payment_state, s.plan_key, s.quantity,
			s.period_start, s.period_end, s.closed_at, s.ended_at, s.cancel_at, s.disputed, s.plan_unresolved,
			w.active_subscription_id IS NOT DISTINCT FROM s.id
		FROM subscriptions s JOIN workspaces w ON w.id = s.workspace_id WHERE s.source_id = $1 ORDER BY s.period_start`, id)
	s.ok(err)
	rows, err := pgx.CollectRows(found, pgx.RowToStructByPos[row])
	s.ok(err)
	return rows
}

// row is one period as the tests look at it.
type row struct {
	ID, Workspace, Kind, Status, Payment, Plan string
	Quantity                                   int32
	Start, End                                 time.Time
	Closed, Ended, CancelAt                    *time.Time
	Disputed, Unresolved, Active               bool
}

// last is the newest row of a subscription.
func (s *site) last(id string) row {
	s.Helper()
	rows := s.rows(id)
	if len(rows) == 0 {
		s.Fatalf("subscription %s has no row; events: %s", id, query[string](s, s.pool,
			`SELECT coalesce(string_agg(type || ' ' || state || ' ' || reason, '; '), 'none') FROM stripe_events`))
	}
	return rows[len(rows)-1]
}

// states counts the events by state and reason.
func (s *site) states(state string) int {
	return query[int](s, s.pool, `SELECT count(*)::int FROM stripe_events WHERE state = $1`, state)
}

// told are the news of renewals of a workspace, by row and kind.
func (s *site) told(workspace string) []news {
	s.Helper()
	found, err := s.pool.Query(context.Background(), `SELECT body->>'subscription_id', body->>'kind' FROM outbox
		WHERE subject_kind = 'subscription.renewed' AND workspace_id = $1 ORDER BY position`, workspace)
	s.ok(err)
	told, err := pgx.CollectRows(found, pgx.RowToStructByPos[news])
	s.ok(err)
	return told
}

type news struct{ Row, Kind string }

// clockNow is where the shop's test clock stands: where a customer is made on it now.
func clockNow(sh *shop) time.Time {
	return sh.CreateCustomer(stripetest.CustomerParams{TestClock: sh.clock}).Created
}
