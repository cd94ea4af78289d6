package main

import (
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/cmd/headroom/devstack"
	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

// securityExample is a file of examples/security.
func securityExample(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../examples/security/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// as is an address with another user.
func as(t *testing.T, address, user string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, password)
	return u.String()
}

func redisClient(t *testing.T, address string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestTheExamplesRedisUserMayDoWhatHeadroomDoesAndNoMore(t *testing.T) {
	t.Parallel()
	address := schematest.RedisServer(t).URL()
	root := redisClient(t, address)
	rule := strings.Fields(strings.Replace(securityExample(t, "redis.acl"), "$HEADROOM_PASSWORD", password, 1))
	command := []any{"ACL", "SETUSER"}
	for _, word := range rule[1:] {
		command = append(command, word)
	}
	if err := root.Do(t.Context(), command...).Err(); err != nil {
		t.Fatal(err)
	}
	i := newInstallation(t).with(map[string]string{
		"HEADROOM_REDIS_URL": as(t, address, "headroom"), "HEADROOM_REDIS_INVALIDATION_CHANNEL": "headroom:invalidated",
	})
	i.must("plans", "apply", demoCatalog)
	s := i.serve()
	s.awaitStatus(http.StatusOK)
	everyDoor(t, i, s)
	if log := root.Do(t.Context(), "ACL", "LOG").Val(); len(log.([]any)) > 0 {
		t.Errorf("Headroom was refused %v", log)
	}

	own := redisClient(t, as(t, address, "headroom"))
	for _, words := range [][]any{
		{"GET", "other"},
		{"SET", "other", "1"},
		{"KEYS", "*"},
		{"FLUSHALL"},
		{"FLUSHDB"},
		{"CONFIG", "GET", "requirepass"},
		{"CONFIG", "SET", "maxmemory", "1"},
		{"ACL", "LIST"},
		{"SHUTDOWN"},
		{"REPLICAOF", "NO", "ONE"},
		{"MONITOR"},
		{"SAVE"},
		{"SCRIPT", "FLUSH"},
		{"FUNCTION", "FLUSH"},
		{"CLIENT", "KILL", "ID", "1"},
		{"PUBLISH", "other", "x"},
		{"EVAL", "return redis.call('get', 'other')", "0"},
	} {
		err := own.Do(t.Context(), words...).Err()
		if err == nil || !strings.Contains(err.Error(), "permission") && !strings.Contains(err.Error(), "can't access") {
			t.Errorf("%v came out as %v, want it refused", words, err)
		}
	}
}

// everyDoor uses what serve does: events, the API by HTTP and by NATS, an invalidation.
func everyDoor(t *testing.T, i *installation, s *serving) {
	t.Helper()
	js := i.jetStream()
	if d := i.decide(js, "ws", "e1"); !d.Allowed {
		t.Errorf("the decision is %+v, want an allowed one", d)
	}
	nc := schematest.NATS(t)
	for _, question := range []struct{ name, body string }{
		{"admit", `{"workspace_id":"ws","execution_id":"e2"}`},
		{"progress", `{"workspace_id":"ws","execution_id":"e2","tasks":1}`},
		{"complete", `{"workspace_id":"ws","execution_id":"e2","outcome":"succeeded"}`},
		{"usage", `{"workspace_id":"ws"}`},
		{"consume", `{"workspace_id":"ws","feature":"automations"}`},
		{"release", `{"workspace_id":"ws","feature":"automations"}`},
	} {
		m := nats.NewMsg("headroom.api." + question.name)
		m.Data = []byte(question.body)
		m.Header.Set("Idempotency-Key", "key-"+question.name)
		answer, err := nc.RequestMsg(m, patience)
		if err != nil || answer.Header.Get("Nats-Service-Error") != "" {
			t.Errorf("%s: %+v %v", question.name, answer, err)
		}
	}
	for _, path := range []string{"/v1/workspaces/ws", "/v1/workspaces/ws/executions", "/v1/workspaces/ws/decisions", "/metrics"} {
		response, err := http.Get("http://" + s.addr + path)
		if err != nil {
			t.Fatal(err)
		}
		if _ = response.Body.Close(); response.StatusCode != http.StatusOK {
			t.Errorf("GET %s: status %d", path, response.StatusCode)
		}
	}
	i.must("workspaces", "assign", "ws", "--plan", "pro")
	i.must("invalidate", "ws")
	i.decide(js, "ws", "e3")
}

// roles is a database with the example's roles, owned and migrated by the first of them.
func roles(t *testing.T) (address string, i *installation) {
	t.Helper()
	address = schematest.TLSPostgresServer(t, devstack.Certificate{}).URL()
	execute(t, address, securityExample(t, "postgres.sql"))
	for _, role := range []string{"headroom_owner", "headroom_serve", "headroom_app"} {
		execute(t, address, "ALTER ROLE "+role+" PASSWORD '"+password+"'")
	}
	i = newInstallation(t)
	i.with(map[string]string{"HEADROOM_POSTGRES_URL": as(t, address, "headroom_owner")}).must("migrate")
	execute(t, as(t, address, "headroom_owner"), securityExample(t, "postgres-after-migrate.sql"))
	return address, i.with(map[string]string{"HEADROOM_POSTGRES_URL": as(t, address, "headroom_serve")})
}

func execute(t *testing.T, address, sql string) {
	t.Helper()
	session, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close(t.Context()) }()
	if _, err := session.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func TestTheExamplesRolesMayDoTheirWorkAndNoMore(t *testing.T) {
	t.Parallel()
	address, i := roles(t)
	i.must("plans", "apply", demoCatalog)
	s := i.serve()
	s.awaitStatus(http.StatusOK)
	everyDoor(t, i, s)
	if hasLine(s.log.String(), "42501") || hasLine(s.log.String(), "permission denied") {
		t.Errorf("Headroom was refused something:\n%s", s.log)
	}
	app := schematest.Pool(t, as(t, address, "headroom_app"), 4)
	count(t, app)
	for role, forbidden := range map[string][]string{
		"headroom_serve": {
			"DROP TABLE executions", "CREATE TABLE mine ()", "ALTER TABLE workspaces ADD COLUMN x int", "TRUNCATE executions", "CREATE ROLE r",
			"DELETE FROM subscription_changes", "UPDATE subscription_changes SET at = now()", "DELETE FROM plan_revisions", "DELETE FROM headroom_migrations",
		},
		"headroom_app": {
			"CREATE TABLE mine ()", "SELECT * FROM executions", "SELECT * FROM outbox", "DELETE FROM outbox", "SELECT * FROM stripe_events", "UPDATE workspaces SET revision = 1",
			"INSERT INTO workspaces (id) VALUES ('x')", "UPDATE subscriptions SET status = 'active'", "DELETE FROM plan_overrides", "UPDATE executions SET outcome = NULL", "DELETE FROM period_usage",
			"SELECT * FROM ledger_applied", "INSERT INTO plan_revisions DEFAULT VALUES",
		},
	} {
		pool := schematest.Pool(t, as(t, address, role), 1)
		for _, statement := range forbidden {
			if _, err := pool.Exec(t.Context(), statement); err == nil ||
				!strings.Contains(err.Error(), "42501") {
				t.Errorf("%s: %s came out as %v, want it refused", role, statement, err)
			}
		}
	}
}

// count takes and gives back as an application does.
func count(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	store := subscriptions.NewStore(pool, subscriptions.StoreOptions{})
	cache := subscriptions.NewCache(store.PlanInfo, subscriptions.CacheOptions{})
	counters := usage.New(usage.Options{Pool: pool, Plans: cache, Catalog: store, Log: schematest.Logger(t)})
	// The third of five reaches no threshold, the fourth reaches 80 percent.
	for _, resource := range []string{"a", "b", "c", "d"} {
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := counters.Consume(t.Context(), tx, usage.Change{WorkspaceID: "app_ws", Feature: "automations", Quantity: 1, ResourceID: resource})
			return err
		})
		if err != nil {
			t.Fatalf("consume as the application: %v", err)
		}
	}
	change := usage.Change{WorkspaceID: "app_ws", Feature: "automations", Quantity: 1}
	if _, err := counters.ConsumeOnce(t.Context(), usage.Once{Key: "k1"}, change); err != nil {
		t.Errorf("consume once as the application: %v", err)
	}
	if _, err := counters.ReleaseOnce(t.Context(), usage.Once{Key: "k2"}, change); err != nil {
		t.Errorf("release as the application: %v", err)
	}
	if err := counters.Keep(t.Context(), "app_ws", "automations", []string{"a"}); err != nil {
		t.Errorf("choose resources as the application: %v", err)
	}
}
