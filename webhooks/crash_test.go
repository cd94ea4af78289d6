package webhooks_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
	"github.com/headroomhq/headroom/webhooks"
	"github.com/headroomhq/headroom/webhooks/stripetest"
)

// stepVariable makes the test binary a process that looks up until it is killed at the
// step that the variable names.
const stepVariable = "HEADROOM_TEST_STEP"

// crashLease is how long a look-up stays that of a process that was killed.
const crashLease = time.Second

// untilKilled returns the exit code of a process that was not killed in time.
func untilKilled(getenv func(string) string) int {
	ctx, cancel := context.WithTimeout(context.Background(), settling)
	defer cancel()
	pool, err := pgxpool.New(ctx, getenv("POSTGRES"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer pool.Close()
	ledger, err := webhooks.NewLedger(pool, webhooks.ModeAny)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	api, err := webhooks.NewAPI(webhooks.APIOptions{Key: getenv("STRIPE_KEY"), URL: getenv("STRIPE")})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	w := webhooks.NewWorker(webhooks.WorkerOptions{
		Ledger: ledger, Store: subscriptions.NewStore(pool, subscriptions.StoreOptions{}), API: api,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	w.LeaseFor(crashLease)
	w.KillAt(getenv(stepVariable))
	if err := w.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 1
}

// crash runs a process until it is killed at the step.
func (sh *shop) crash(step string) {
	sh.Helper()
	self, err := os.Executable()
	sh.ok(err)
	server := httptest.NewServer(sh.Handler())
	defer server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), settling)
	defer cancel()
	process := exec.CommandContext(ctx, self)
	process.Env = append(os.Environ(), stepVariable+"="+step, "POSTGRES="+schematest.PostgresURL(sh.TB),
		"STRIPE="+server.URL, "STRIPE_KEY="+sh.Key(false))
	var log strings.Builder
	process.Stderr = &log
	var exit *exec.ExitError
	err = process.Run()
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL || ctx.Err() != nil {
		sh.Fatalf("the process was not killed at %s: %v, %v\n%s", step, err, ctx.Err(), log.String())
	}
}

// arrive has all new events stored and answered with 200.
func (sh *shop) arrive() {
	sh.Helper()
	for _, d := range sh.endpoint.Flush(context.Background()) {
		if !d.OK() {
			sh.Fatalf("%s was answered %d, %v", d.Event.Type, d.Status, d.Err)
		}
	}
}

func TestAKillAtAnyStepLosesNothingAndDoublesNothing(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"claimed", "found", "written", "settled", "taken", "traced", "attached"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			sh := newSite(t, subscriptions.Policy{}).open(shopOptions{idle: true})
			sub := plain(sh)
			_, err := sh.Refund(sub.LatestInvoice, 500)
			sh.ok(err)
			sh.arrive()
			sh.crash(step)
			sh.hurry()
			sh.pass(32 * aDay)
			sh.arrive()
			sh.crash(stepOfSecond(step))
			killed := time.Now()
			if step != "claimed" { // which shows how long it takes by itself
				sh.hurry()
			}
			sh.employ(shopOptions{})
			sh.settle()
			t.Logf("settled %s after the second kill", time.Since(killed).Round(time.Millisecond))
			sh.compare()
			sh.once()
		})
	}
}

// hurry makes due at once what a killed process had, as it is after its lease.
func (sh *shop) hurry() {
	sh.Helper()
	for _, table := range []string{"stripe_sync_requests", "stripe_events"} {
		_, err := sh.pool.Exec(context.Background(), `UPDATE `+table+` SET next_attempt_at = least(next_attempt_at, now())`)
		sh.ok(err)
	}
}

// stepOfSecond is where the second process is killed: there is no object for it.
func stepOfSecond(step string) string {
	switch step {
	case "taken", "traced", "attached":
		return "written"
	default:
		return step
	}
}

// once checks that nothing was done twice: each delivery, each event, each piece of news
// and each note is there one time.
func (sh *shop) once() {
	sh.Helper()
	for what, sql := range map[string]string{
		"events":  `SELECT count(*) = count(DISTINCT event_id) FROM stripe_events`,
		"news":    `SELECT count(*) = count(DISTINCT (body->>'subscription_id', body->>'kind')) FROM outbox WHERE subject_kind = 'subscription.renewed'`,
		"notes":   `SELECT count(*) = count(DISTINCT (field, new_value)) FROM subscription_changes WHERE field LIKE 'refund %'`,
		"refunds": `SELECT count(*) = 1 FROM subscription_changes WHERE field LIKE 'refund %'`,
		"rows":    `SELECT count(*) = count(DISTINCT period_start) FROM subscriptions`,
	} {
		if !query[bool](sh, sh.pool, sql) {
			sh.Errorf("%s are there twice, or not at all", what)
		}
	}
	if n := sh.states("received") + sh.states("dead") + sh.states("parked") + sh.states("unmapped"); n != 0 {
		sh.Errorf("%d events are left", n)
	}
}

func TestARestartOfPostgresLosesNothingThatWasAcknowledged(t *testing.T) {
	t.Parallel()
	server := schematest.PostgresServer(t)
	pool, err := pgxpool.New(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s := siteOn(t, pool, subscriptions.Policy{})
	sh := s.open(shopOptions{workers: 2, lease: crashLease})
	for range 5 {
		sh.subscribe(stripetest.SubscribeParams{})
	}
	sh.arrive()
	s.ok(server.Kill())
	sh.pass(32 * aDay)
	// A server process may outlive its master for a moment, and acknowledge truthfully.
	var acknowledged []string
	for _, d := range sh.endpoint.Send(t.Context(), sh.Events()[len(sh.Events())-2:]...) {
		switch {
		case d.OK():
			acknowledged = append(acknowledged, d.Event.ID)
		case d.Status != http.StatusServiceUnavailable:
			t.Errorf("%s is answered %d while postgres is away", d.Event.Type, d.Status)
		}
	}
	s.ok(server.Restart(t.Context()))
	if n := query[int](t, pool, `SELECT count(*)::int FROM stripe_events WHERE event_id = ANY($1)`, acknowledged); n != len(acknowledged) {
		t.Errorf("%d of %d acknowledged events are there", n, len(acknowledged))
	}
	sh.arrive()
	sh.settle()
	sh.compare()
	if n := s.states("received"); n != 0 {
		t.Errorf("%d events are left", n)
	}
}
