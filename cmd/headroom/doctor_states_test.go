package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/cmd/headroom/devstack"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

func dialTestRedis(t testing.TB, address string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestWhatIsWrongWithARedisIsFound(t *testing.T) {
	t.Parallel()
	address := schematest.RedisServer(t).URL()
	client := dialTestRedis(t, address)
	i := newInstallation(t).with(map[string]string{"HEADROOM_REDIS_URL": address})
	for _, step := range []struct {
		setting, value string
		want           map[string]string
	}{
		{"maxmemory-policy", "volatile-ttl", map[string]string{"redis.eviction": statusWarn, "redis.persistence": statusWarn, "redis.memory": statusOK}},
		{"maxmemory-policy", "allkeys-lfu", map[string]string{"redis.eviction": statusFail}},
		{"maxmemory-policy", "noeviction", map[string]string{"redis.eviction": statusOK}},
		{"appendonly", "yes", map[string]string{"redis.persistence": statusWarn}}, // the server of the tests has appendfsync no
		{"appendfsync", "everysec", map[string]string{"redis.persistence": statusOK}},
		{"maxmemory", "100kb", map[string]string{"redis.memory": statusFail}}, // an empty server has more
	} {
		if err := client.ConfigSet(t.Context(), step.setting, step.value).Err(); err != nil {
			t.Fatal(err)
		}
		found, _ := i.examined()
		wantStatuses(t, found, step.want)
	}
}

func TestARedisThatForbidsScriptsIsFound(t *testing.T) {
	t.Parallel()
	address := schematest.RedisServer(t).URL()
	if err := dialTestRedis(t, address).Do(t.Context(), "ACL", "SETUSER", "short", "on", ">word", "~*", "&*", "+@all", "-script", "-config").Err(); err != nil {
		t.Fatal(err)
	}
	_, host, _ := strings.Cut(address, "@")
	found, _ := newInstallation(t).with(map[string]string{"HEADROOM_REDIS_URL": "redis://short:word@" + host}).examined()
	wantStatuses(t, found, map[string]string{"redis.scripts": statusFail, "redis.persistence": statusWarn, "redis.eviction": statusOK})
}

func TestAReplicaInThePlaceOfThePrimaryIsFound(t *testing.T) {
	t.Parallel()
	primary, replica := schematest.RedisServer(t).URL(), schematest.RedisServer(t).URL()
	of, err := redis.ParseURL(primary)
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(of.Addr, ":")
	client := dialTestRedis(t, replica)
	if err := client.ConfigSet(t.Context(), "masterauth", of.Password).Err(); err != nil {
		t.Fatal(err)
	}
	if err := client.ReplicaOf(t.Context(), host, port).Err(); err != nil {
		t.Fatal(err)
	}
	found, _ := newInstallation(t).with(map[string]string{"HEADROOM_REDIS_URL": replica}).examined()
	wantStatuses(t, found, map[string]string{"redis.primary": statusFail})
}

func TestAClusterIsRecognised(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cluster, err := devstack.StartRedis(ctx, devstack.RedisOptions{Cluster: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Stop(context.WithoutCancel(t.Context())) })
	address := strings.TrimSuffix(cluster.URL(), "/0")
	_, host, _ := strings.Cut(address, "@")
	i := newInstallation(t)
	found, _ := i.with(map[string]string{"HEADROOM_REDIS_URL": address + "?addr=" + host}).examined()
	wantStatuses(t, found, map[string]string{"redis.cluster": statusOK, "redis.scripts": statusOK, "clocks.redis": statusOK})
	_, port, _ := strings.Cut(host, ":")
	if server, _ := found["redis.eviction"].Details["server"].(string); !strings.HasSuffix(server, ":"+port) {
		t.Errorf("redis.eviction is of server %q, want port %s", server, port)
	}
	found, _ = i.with(map[string]string{"HEADROOM_REDIS_URL": address}).examined()
	wantStatuses(t, found, map[string]string{"redis.cluster": statusWarn})

	if err := dialTestRedis(t, address).Do(t.Context(), "CLUSTER", "DELSLOTS", "0").Err(); err != nil {
		t.Fatal(err)
	}
	awaitClusterDown(t, address)
	found, _ = i.with(map[string]string{"HEADROOM_REDIS_URL": address}).examined()
	wantStatuses(t, found, map[string]string{"redis.cluster": statusFail})
}

// awaitClusterDown waits until the server has noticed that a slot is nobody's.
func awaitClusterDown(t *testing.T, address string) {
	t.Helper()
	client := dialTestRedis(t, address)
	glance := time.NewTicker(20 * time.Millisecond)
	defer glance.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-glance.C {
		if text, err := client.ClusterInfo(t.Context()).Result(); err == nil && strings.Contains(text, "cluster_state:fail") {
			return
		}
	}
	t.Fatal("the Cluster is still whole")
}

func TestWhatIsWrongWithADatabaseIsFound(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("migrate")
	found, err := i.examined()
	if exitCode(err) != exitFailed {
		t.Errorf("without a catalog the exit code is %d (%v)", exitCode(err), err)
	}
	wantStatuses(t, found, map[string]string{
		"postgres.catalog": statusFail, "postgres.outbox": statusOK, "subscriptions.renewals": statusOK, "ledger.gaps": statusOK,
		"postgres.durability": statusWarn, // the servers of the tests have fsync off
	})

	i.must("plans", "apply", demoCatalog)
	i.must("workspaces", "assign", "ws", "--plan", "pro")
	pool := schematest.Postgres(t)
	var database string
	if err := pool.QueryRow(t.Context(), `SELECT current_database()`).Scan(&database); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`ALTER DATABASE ` + database + ` SET default_transaction_isolation = 'repeatable read'`,
		`ALTER DATABASE ` + database + ` SET synchronous_commit = off`,
		`ALTER DATABASE ` + database + ` SET statement_timeout = '7s'`,
		`ALTER DATABASE ` + database + ` CONNECTION LIMIT 9`,
		`UPDATE outbox SET created_at = now() - interval '2 minutes', published_at = NULL`,
		`UPDATE subscriptions SET plan_unresolved = true, overdue_since = now(), due_at = now() - interval '20 minutes'`,
		`UPDATE subscriptions SET due_at = now() - interval '20 minutes'`,
		`INSERT INTO plan_revisions (plan_key, revision, removed) SELECT 'pro', nextval('catalog_revision_seq'), true`,
		`DELETE FROM headroom_migrations WHERE version_id = 14`,
		`INSERT INTO ledger_applied (stream, sequence) SELECT 'HEADROOM_DECISIONS@' || '` + i.created(schemas.StreamDecisions) + `', 5
			ON CONFLICT (stream, partition) DO UPDATE SET sequence = 5`,
	} {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	found, err = i.examined()
	if exitCode(err) != exitFailed {
		t.Errorf("the exit code is %d (%v)", exitCode(err), err)
	}
	wantStatuses(t, found, map[string]string{
		"postgres.isolation": statusFail, "postgres.durability": statusFail, "postgres.timeouts": statusWarn, "postgres.connections": statusFail,
		"postgres.migrations": statusFail, "postgres.outbox": statusWarn, "postgres.catalog": statusOK,
		"subscriptions.renewals": statusFail, "subscriptions.overdue": statusWarn, "subscriptions.unresolved": statusWarn, "subscriptions.plans": statusWarn,
		"ledger.gaps": statusFail,
	})
}

// created is how the ledger writes when a stream was made.
func (i *installation) created(kind schemas.StreamKind) string {
	i.t.Helper()
	stream, err := i.jetStream().Stream(i.t.Context(), schemas.Topology{}.Stream(kind))
	if err != nil {
		i.t.Fatal(err)
	}
	return stream.CachedInfo().Created.UTC().Format("2006-01-02T15:04:05.000000000Z")
}

func TestADatabaseThatIsNotPreparedOrReadOnlyIsFound(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	pool := schematest.Postgres(t)
	var database string
	if err := pool.QueryRow(t.Context(), `SELECT current_database()`).Scan(&database); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `DROP SCHEMA public CASCADE; CREATE SCHEMA public`); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `ALTER DATABASE `+database+` SET default_transaction_read_only = on`); err != nil {
		t.Fatal(err)
	}
	found, _ := i.examined()
	wantStatuses(t, found, map[string]string{
		"postgres.primary": statusFail, "postgres.migrations": statusFail, "postgres.catalog": statusFail, "subscriptions.renewals": statusFail,
	})
	if what := found["postgres.catalog"].What; !strings.Contains(what, "not prepared") {
		t.Errorf("postgres.catalog says %q", what)
	}
	var tables int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_tables WHERE schemaname = 'public'`).Scan(&tables); err != nil || tables != 0 {
		t.Errorf("the doctor made %d tables (%v)", tables, err)
	}
}

func TestTheLedgersLagIsMeasured(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("migrate")
	if _, err := i.jetStream().Publish(t.Context(), schemas.Topology{}.Completed("ws"), []byte("{}")); err != nil {
		t.Fatal(err)
	}
	found, _ := i.examined()
	wantStatuses(t, found, map[string]string{"ledger.lag": statusOK})
	streams, _ := found["ledger.lag"].Details["streams"].(map[string]any)
	executions, _ := streams["HEADROOM_EXECUTIONS"].(map[string]any)
	if behind, _ := executions["behind_seconds"].(float64); behind <= 0 || executions["last"] != 1.0 || executions["applied"] != 0.0 {
		t.Errorf("the ledger is %v behind", executions)
	}
}

func TestStripesRefusalOfAKeyAndWhatWaitsAreFound(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.must("migrate")
	pool := schematest.Postgres(t)
	for _, statement := range []string{
		`INSERT INTO stripe_events (account, event_id, livemode, received_at, body, state, next_attempt_at) VALUES
			('', 'evt_1', true, now() - interval '1 hour', '{}', 'parked', now())`,
		`INSERT INTO stripe_sync_requests (account, livemode, subscription_id, requested_at, cause, next_attempt_at) VALUES
			('', true, 'sub_1', now() - interval '2 minutes', 'test', now())`,
		`INSERT INTO stripe_sync_requests (account, livemode, subscription_id, requested_at, cause, next_attempt_at, synced_generation, outcome) VALUES
			('', true, 'sub_2', now(), 'test', now(), 1, 'unmapped')`,
	} {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	found, err := a.with(map[string]string{"HEADROOM_STRIPE_API_KEY": "rk_live_of_somebody_else"}).examined()
	if exitCode(err) != exitFailed {
		t.Errorf("the exit code is %d (%v)", exitCode(err), err)
	}
	wantStatuses(t, found, map[string]string{"stripe.reachable": statusFail, "stripe.events": statusWarn, "stripe.lookups": statusWarn, "stripe.waiting": statusWarn})
}
