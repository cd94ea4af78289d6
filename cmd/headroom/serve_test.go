package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

func TestServeDecidesAnExecutionAndEndsInOrder(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("plans", "apply", demoCatalog)
	s := i.serve()
	s.awaitStatus(http.StatusOK)

	d := i.decide(i.jetStream(), "ws_first", "e1")
	if !d.Allowed || d.PlanKey != "free" || d.Used != 1 {
		t.Errorf("decision is %+v, want an allowed one on plan free with used 1", d)
	}
	if err := s.end(); err != nil {
		t.Errorf("serve ended with %v, want nil", err)
	}
	s.log.await(t, "draining")
	s.log.await(t, "stopped")
}

func TestServeUsesNewTermsAtOnce(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("plans", "apply", demoCatalog)
	s := i.serve()
	s.awaitStatus(http.StatusOK)
	js := i.jetStream()

	if d := i.decide(js, "ws_up", "e1"); d.PlanKey != "free" {
		t.Fatalf("decided on plan %s, want free", d.PlanKey)
	}
	i.must("workspaces", "assign", "ws_up", "--plan", "pro")
	awaitPlan(t, i, "ws_up", func(d schemas.DecisionMade) bool { return d.PlanKey == "pro" })

	other := i.decide(js, "ws_free", "e1")
	i.must("plans", "apply", catalogFile(t, "max_executions: 100\n", "max_executions: 7\n"))
	d := awaitPlan(t, i, "ws_free", func(d schemas.DecisionMade) bool { return d.PlanRevision > other.PlanRevision })
	if want := schemas.LimitOf(7); d.Limits.MaxExecutions != want {
		t.Errorf("the limit is %v after the catalog changed it to %v", d.Limits.MaxExecutions, want)
	}
}

func TestServeWaitsForServicesThatStartAfterIt(t *testing.T) {
	t.Parallel()
	redis := schematest.RedisServer(t)
	i := newInstallation(t).with(map[string]string{"HEADROOM_REDIS_URL": redis.URL()})
	i.must("plans", "apply", demoCatalog)
	if err := redis.Kill(); err != nil {
		t.Fatal(err)
	}
	s := i.serve()
	s.log.await(t, "service is not ready yet")
	body := s.awaitStatus(http.StatusServiceUnavailable)
	if c := body.Checks["redis"]; c.OK || c.Error == "" {
		t.Errorf("/readyz says of redis %+v, want why it is not ready", c)
	}
	if err := redis.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.awaitStatus(http.StatusOK)
	s.log.await(t, "ready")
	if d := i.decide(i.jetStream(), "ws_late", "e1"); !d.Allowed {
		t.Errorf("denied with %d %s", d.Code, enforcement.CodeName(d.Code))
	}

	if err := redis.Kill(); err != nil {
		t.Fatal(err)
	}
	if line := s.log.await(t, "service is lost"); line["service"] != "redis" || line["error"] == nil {
		t.Errorf("the log says of the loss %v", line)
	}
	body = s.awaitStatus(http.StatusServiceUnavailable)
	if body.Status != statusNotReady || body.Checks["redis"].OK || !body.Checks["postgres"].OK || !body.Checks["nats"].OK {
		t.Errorf("/readyz says %+v, want redis alone not ready", body)
	}
	if err := redis.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if line := s.log.await(t, "service is back"); line["service"] != "redis" {
		t.Errorf("the log says of the return %v", line)
	}
	for _, message := range []string{"ready", "service is lost", "service is back"} {
		if n := strings.Count(s.log.String(), `"msg":"`+message+`"`); n != 1 {
			t.Errorf("%q was logged %d times, want once", message, n)
		}
	}
}

func TestServeTellsThatNoCatalogWasApplied(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	s := i.serve()
	s.log.await(t, "no plans yet, executions wait until a catalog is applied")
	deadline := time.After(patience)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	await := func(want check) {
		t.Helper()
		for body := s.awaitStatus(http.StatusOK); body.Checks["catalog"] != want; _, body = s.readiness() {
			select {
			case <-deadline:
				t.Fatalf("/readyz says %+v, want of the catalog %+v", body, want)
			case <-ticker.C:
			}
		}
	}
	await(check{Error: "no default plan: apply a catalog with `headroom plans apply FILE`"})
	i.must("plans", "apply", demoCatalog)
	await(check{OK: true})
}

func TestServeThatNeverReachedItsServicesEndsInOrder(t *testing.T) {
	t.Parallel()
	nowhere := map[string]string{
		"HEADROOM_NATS_URL":     "nats://127.0.0.1:1",
		"HEADROOM_REDIS_URL":    "redis://127.0.0.1:1",
		"HEADROOM_POSTGRES_URL": "postgres://127.0.0.1:1/none?sslmode=disable",
		"HEADROOM_HTTP_ADDR":    "127.0.0.1:0",
	}
	s := (&installation{t: t, settings: nowhere}).serve()
	body := s.awaitStatus(http.StatusServiceUnavailable)
	for _, name := range []string{"nats", "redis", "postgres", "consumers", "catalog"} {
		if c := body.Checks[name]; c.OK || c.Error == "" {
			t.Errorf("/readyz says of %s %+v, want why it is not ready", name, c)
		}
	}
	if err := s.end(); err != nil {
		t.Errorf("serve ended with %v, want nil", err)
	}
}

func TestServeRefusesARedisThatMayEvictCounters(t *testing.T) {
	t.Parallel()
	server := schematest.RedisServer(t)
	client, err := newRedis(Config{RedisURL: NewSecret(server.URL()), Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if err := client.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err(); err != nil {
		t.Fatal(err)
	}
	_, _, err = newInstallation(t).with(map[string]string{"HEADROOM_REDIS_URL": server.URL()}).run("serve")
	if exitCode(err) != exitFailed {
		t.Fatalf("serve ended with %v, want a failure", err)
	}
	for _, part := range []string{"start redis", "allkeys-lru", "noeviction"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in the error: %v", part, err)
		}
	}
}

func TestServeFailsAtOnceOnAnAddressThatIsTaken(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	s := i.serve()
	_, _, err := i.with(map[string]string{"HEADROOM_HTTP_ADDR": s.addr}).run("serve")
	if exitCode(err) != exitFailed || !strings.Contains(err.Error(), "HEADROOM_HTTP_ADDR") || !strings.Contains(err.Error(), "port 0") {
		t.Errorf("serve on a taken address ended with %v, want a failure that names the setting and what to do", err)
	}
	stdout, _, err := i.with(map[string]string{"HEADROOM_HTTP_ADDR": s.addr}).run("dev")
	if exitCode(err) != exitFailed || !strings.Contains(err.Error(), "port 0") || stdout != "" {
		t.Errorf("dev on a taken address ended with %v after %q, want that it fails before it starts anything", err, stdout)
	}
}

// awaitPlan asks for one execution after another, as a workspace does, until a
// decision was measured against the plan that is waited for.
func awaitPlan(t *testing.T, i *installation, workspace string, wanted func(schemas.DecisionMade) bool) schemas.DecisionMade {
	t.Helper()
	js := i.jetStream()
	deadline := time.After(patience)
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for n := 0; ; n++ {
		d := i.decide(js, workspace, fmt.Sprintf("await-%d", n))
		if wanted(d) {
			return d
		}
		select {
		case <-deadline:
			t.Fatalf("the last decision was on plan %s revision %d", d.PlanKey, d.PlanRevision)
		case <-ticker.C:
		}
	}
}
