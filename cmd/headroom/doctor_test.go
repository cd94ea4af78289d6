package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/cmd/headroom/devstack"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/webhooks/stripetest"
)

// examined runs the doctor, and returns its findings by id and how it ended.
func (i *installation) examined() (map[string]finding, error) {
	i.t.Helper()
	stdout, stderr, err := i.run("doctor", "-o", "json")
	var findings []finding
	if broken := json.Unmarshal([]byte(stdout), &findings); broken != nil {
		i.t.Fatalf("headroom doctor: %v\n%s\n%s", broken, stdout, stderr)
	}
	byID := make(map[string]finding)
	for _, f := range findings {
		if _, twice := byID[f.ID]; twice {
			i.t.Errorf("%s is reported twice", f.ID)
		}
		byID[f.ID] = f
	}
	return byID, err
}

// wantStatuses holds findings against the statuses that some of them should have.
func wantStatuses(t *testing.T, found map[string]finding, want map[string]string) {
	t.Helper()
	for id, status := range want {
		f, there := found[id]
		switch {
		case !there:
			t.Errorf("%s is not reported, want %s", id, status)
		case f.Status != status:
			t.Errorf("%s is %s (%s), want %s", id, f.Status, f.What, status)
		case status != statusOK && f.Remedy == "":
			t.Errorf("%s is %s without a remedy", id, f.Status)
		}
	}
}

// healthy is an installation whose services keep what they acknowledge, and that follows
// Stripe.
func healthy(t *testing.T) *installation {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	nats, err := devstack.StartNATS(ctx, devstack.NATSOptions{Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nats.Stop(context.WithoutCancel(t.Context())) })
	redis := schematest.DurableRedisServer(t)
	if err := dialTestRedis(t, redis.URL()).ConfigSet(ctx, "appendfsync", "everysec").Err(); err != nil {
		t.Fatal(err)
	}
	stripe := stripetest.New(stripetest.Options{})
	server := httptest.NewServer(stripe.Handler())
	t.Cleanup(server.Close)
	i := &installation{t: t, settings: map[string]string{
		"HEADROOM_NATS_URL": nats.URL(), "HEADROOM_REDIS_URL": redis.URL(), "HEADROOM_POSTGRES_URL": schematest.DurablePostgresServer(t).URL(),
		"HEADROOM_HTTP_ADDR": "127.0.0.1:0", "HEADROOM_LOG_LEVEL": "warn",
		"HEADROOM_STRIPE_WEBHOOK_SECRETS": stripeSecret, "HEADROOM_STRIPE_API_KEY": stripe.Key(true), "HEADROOM_STRIPE_API_URL": server.URL,
	}}
	i.must("migrate")
	i.must("plans", "apply", demoCatalog)
	return i
}

func TestAHealthyInstallationHasNothingToLookAt(t *testing.T) {
	t.Parallel()
	i := healthy(t)
	found, err := i.examined()
	if err != nil {
		t.Errorf("the doctor ends with %v", err)
	}
	for _, d := range diagnoses() {
		f, there := found[d.ID]
		if !there || f.Status != statusOK || f.Service != d.Service {
			t.Errorf("%s is %+v, want it to be ok", d.ID, f)
		}
	}
	if len(found) != len(diagnoses()) {
		t.Errorf("%d checks are reported, %d are in the table", len(found), len(diagnoses()))
	}
	stdout := i.must("doctor")
	if want := fmt.Sprintf("%d checks: %d ok, 0 to look at, 0 failing\n", len(found), len(found)); !strings.HasSuffix(stdout, want) {
		t.Errorf("the table ends with\n%s\nwant %s", stdout, want)
	}
	if !hasLine(stdout, "ok", "redis.eviction", "maxmemory-policy is noeviction") {
		t.Errorf("the table has no line of redis.eviction:\n%s", stdout)
	}
}

func TestAFindingInJSONHasTheShapeThatIsDocumented(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	redis := schematest.RedisServer(t)
	if err := dialTestRedis(t, redis.URL()).ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err(); err != nil {
		t.Fatal(err)
	}
	stdout, _, err := i.with(map[string]string{"HEADROOM_REDIS_URL": redis.URL()}).run("doctor", "-o", "json")
	if exitCode(err) != exitFailed {
		t.Errorf("the exit code is %d (%v), want %d", exitCode(err), err, exitFailed)
	}
	var findings []map[string]any
	if err := json.Unmarshal([]byte(stdout), &findings); err != nil {
		t.Fatalf("%v\n%s", err, stdout)
	}
	for _, f := range findings {
		if diff := cmp.Diff([]string{"details", "id", "remedy", "service", "status", "what"}, sortedKeys(f)); diff != "" {
			t.Errorf("the members of %v (-want +got):\n%s", f["id"], diff)
		}
		if details, is := f["details"].(map[string]any); !is || details == nil {
			t.Errorf("the details of %v are %v, want an object", f["id"], f["details"])
		}
		if f["id"] != "redis.eviction" {
			continue
		}
		want := map[string]any{
			"id": "redis.eviction", "service": "redis", "status": "fail",
			"what":    "maxmemory-policy is allkeys-lru, which may delete counters",
			"remedy":  "set maxmemory-policy to noeviction, in redis.conf and with CONFIG SET",
			"details": map[string]any{"maxmemory_policy": "allkeys-lru"},
		}
		if diff := cmp.Diff(want, f); diff != "" {
			t.Errorf("redis.eviction (-want +got):\n%s", diff)
		}
	}
}

// nobody is an address that nothing listens on.
func nobody(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// silent is an address that lets everybody in and answers nobody.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var accepting sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	accepting.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
		}
	})
	t.Cleanup(func() {
		listener.Close()
		accepting.Wait()
		for _, conn := range conns {
			conn.Close()
		}
	})
	return listener.Addr().String()
}

func TestTheOthersAreCheckedWhenAServiceIsAway(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]func(*testing.T) string{"refuses": nobody, "is silent": silent} {
		for service, setting := range map[string]struct{ variable, url string }{
			"nats":     {"HEADROOM_NATS_URL", "nats://%s"},
			"redis":    {"HEADROOM_REDIS_URL", "redis://%s"},
			"postgres": {"HEADROOM_POSTGRES_URL", "postgres://someone:secret-word@%s/headroom?sslmode=disable"},
		} {
			t.Run(service+" "+name, func(t *testing.T) {
				t.Parallel()
				i := newInstallation(t)
				i.must("migrate")
				began := time.Now()
				found, err := i.with(map[string]string{setting.variable: fmt.Sprintf(setting.url, address(t))}).examined()
				if took := time.Since(began); took > 3*checkPatience {
					t.Errorf("the doctor took %s", took)
				}
				if exitCode(err) != exitFailed {
					t.Errorf("the exit code is %d (%v)", exitCode(err), err)
				}
				want := map[string]string{"nats.version": statusOK, "redis.version": statusOK, "postgres.version": statusOK}
				delete(want, service+".version")
				want[service+".reachable"] = statusFail
				wantStatuses(t, found, want)
				if text := fmt.Sprint(found); strings.Contains(text, "secret-word") {
					t.Errorf("a password is shown: %s", text)
				}
			})
		}
	}
}

func TestAClockThatIsOffIsFoundInAllServices(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("migrate")
	for name, test := range map[string]struct {
		off  time.Duration
		want string
	}{
		"right":                 {0, statusOK},
		"behind by two seconds": {-2500 * time.Millisecond, statusWarn},
		"ahead by two minutes":  {2 * time.Minute, statusFail},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := &examined{}
			clock := func() time.Time { return time.Now().Add(test.off) }
			newDoctor(environ(i.settings), clock, report).examine(t.Context())
			found := make(map[string]finding)
			for _, f := range report.sorted() {
				found[f.ID] = f
			}
			wantStatuses(t, found, map[string]string{"clocks.redis": test.want, "clocks.postgres": test.want, "clocks.nats": test.want})
		})
	}
}

func TestSettingsWithFaultsKeepNoServiceFromBeingChecked(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	found, err := i.with(map[string]string{
		"HEADROOM_WORKERS": "x", "HEADROOM_REDIS_URL": "http://no", "HEADROOM_SHADOW": "true", "HEADROOM_HTTP_ADDR": "0.0.0.0:8080",
		"HEADROOM_STRIPE_API_KEY": "rk_live_x", "HEADROOM_STRIPE_API_URL": "http://" + nobody(t),
	}).examined()
	if exitCode(err) != exitFailed {
		t.Errorf("the exit code is %d (%v)", exitCode(err), err)
	}
	wantStatuses(t, found, map[string]string{
		"settings.values": statusFail, "settings.shadow": statusWarn, "settings.tokens": statusFail, "settings.stripe": statusWarn,
		"redis.reachable": statusFail, "nats.version": statusOK, "postgres.version": statusOK, "stripe.reachable": statusWarn,
	})
	for _, name := range []string{"HEADROOM_WORKERS", "HEADROOM_REDIS_URL"} {
		if !strings.Contains(found["settings.values"].What, name) {
			t.Errorf("the faults are %q, want %s among them", found["settings.values"].What, name)
		}
	}
}

func TestAVariableWithoutEffectIsFound(t *testing.T) {
	t.Parallel()
	report := &examined{}
	d := newDoctor(environ(map[string]string{"HEADROOM_WORKER": "3"}), now, report)
	d.readSettings(noFiles, []string{"HEADROOM_WORKER=3", "HOME=/root"})
	found := report.sorted()
	if len(found) != 2 || found[1].Status != statusWarn || !strings.Contains(found[1].What, "HEADROOM_WORKERS") {
		t.Errorf("the findings are %+v", found)
	}
}

func TestOnATerminalAFindingIsPrintedWhenItIsKnown(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	report := &examined{out: &out, live: true}
	report.add(fails("it is wrong").of("redis.version"))
	printed := out.String()
	if !hasLine(printed, "fail", "redis.version", "it is wrong") || !strings.Contains(printed, "-> upgrade to Redis 7.0") {
		t.Errorf("printed is %q", printed)
	}
	report.finish(report.sorted())
	if got := strings.TrimPrefix(out.String(), printed); got != "\n1 check: 0 ok, 0 to look at, 1 failing\n" {
		t.Errorf("the end is %q", got)
	}
}

// A check that does not heed its context is not waited for.
func TestACheckThatHangsIsFailed(t *testing.T) {
	t.Parallel()
	report := &examined{}
	d := newDoctor(environ(nil), now, report)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	release := make(chan struct{})
	defer close(release)
	d.check(ctx, examination{"nats.lag", func(context.Context) judgement { <-release; return passes("late") }})
	if found := report.sorted(); len(found) != 1 || found[0].Status != statusFail || !strings.Contains(found[0].What, "no answer within") {
		t.Errorf("the findings are %+v", found)
	}
}

func TestEveryDiagnosisIsComplete(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, d := range diagnoses() {
		service, _, _ := strings.Cut(d.ID, ".")
		if seen[d.ID] || service != d.Service || d.Remedy == "" || d.Fails+d.Warns == "" {
			t.Errorf("%+v is there twice, of another service, or lacks a text", d)
		}
		seen[d.ID] = true
	}
	if names := slices.Sorted(maps.Keys(seen)); len(names) < 40 {
		t.Errorf("there are %d checks", len(names))
	}
}
