package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
	"github.com/headroomhq/headroom/webhooks"
)

// What no test can bring about with the servers it has is judged from what they would say.
func TestWhatCannotBeBroughtAboutIsJudgedFromItsFigures(t *testing.T) {
	t.Parallel()
	said := func(pairs ...string) redisNode {
		n := redisNode{info: make(map[string]string), fsync: "everysec"}
		for i := 0; i < len(pairs); i += 2 {
			n.info[pairs[i]] = pairs[i+1]
		}
		return n
	}
	session := func(name, value string) postgresFacts {
		return postgresFacts{RoleLimit: -1, DatabaseLimit: -1, InUse: 85, Settings: map[string]string{
			"server_version_num": "150000", "max_connections": "100", "superuser_reserved_connections": "3", name: value,
		}}
	}
	full := func(used, most int64) *jetstream.AccountInfo {
		return &jetstream.AccountInfo{Tier: jetstream.Tier{Store: uint64(used), Limits: jetstream.AccountLimits{MaxStore: most}}}
	}
	copies := func(peers ...*jetstream.PeerInfo) map[string]*jetstream.StreamInfo {
		return map[string]*jetstream.StreamInfo{"S": {Cluster: &jetstream.ClusterInfo{Replicas: peers}}}
	}
	lag := func(age time.Duration) map[string]consumerLag {
		return map[string]consumerLag{"S/a": {}, "S/b": {AckPending: 1, oldest: age}}
	}
	for name, test := range map[string]struct {
		got  judgement
		want string
	}{
		"nats 2.12.14":                     {judgeNATSVersion("2.12.14"), statusFail},
		"nats 2.13.0":                      {judgeNATSVersion("2.13.0"), statusFail},
		"nats 2.14.5":                      {judgeNATSVersion("2.14.5"), statusOK},
		"payload of 64 KB":                 {judgePayload(64 << 10), statusWarn},
		"payload of 1 MB":                  {judgePayload(1 << 20), statusOK},
		"storage at 80 %":                  {judgeNATSStorage(full(80, 100), nil), statusWarn},
		"storage at 95 %":                  {judgeNATSStorage(full(95, 100), nil), statusFail},
		"storage without a bound":          {judgeNATSStorage(full(95, -1), nil), statusOK},
		"a cluster with one copy":          {judgeReplicas(1, "c", nil), statusWarn},
		"a cluster with three copies":      {judgeReplicas(3, "c", copies(&jetstream.PeerInfo{Current: true})), statusOK},
		"a copy that is away":              {judgeReplicas(3, "c", copies(&jetstream.PeerInfo{Offline: true})), statusWarn},
		"a copy that is behind":            {judgeReplicas(3, "c", copies(&jetstream.PeerInfo{})), statusWarn},
		"an even number of copies":         {judgeReplicas(4, "c", nil), statusWarn},
		"late syncs with three copies":     {judgeSync(3, &natsServer{}), statusOK},
		"an event of a minute":             {judgeLag(lag(61 * time.Second)), statusWarn},
		"an event of an hour":              {judgeLag(lag(time.Hour)), statusFail},
		"an event of a second":             {judgeLag(lag(time.Second)), statusOK},
		"redis 6.2":                        {judgeRedisVersion(said("redis_version", "6.2.14")), statusFail},
		"redis without a version":          {judgeRedisVersion(said()), statusWarn},
		"redis that cannot write":          {judgePersistence(said("aof_enabled", "1", "aof_last_write_status", "err")), statusFail},
		"redis with snapshots alone":       {judgePersistence(said("aof_enabled", "0", "rdb_last_save_time", "1764000000")), statusWarn},
		"a replica that lags":              {judgePrimary(said("role", "master", "connected_slaves", "1", "slave0", "state=online,lag=11")), statusWarn},
		"a replica that keeps up":          {judgePrimary(said("role", "master", "connected_slaves", "1", "slave0", "state=online,lag=1")), statusOK},
		"redis at 80 %":                    {judgeRedisMemory(said("used_memory", "80", "maxmemory", "100")), statusWarn},
		"postgres 14":                      {judgePostgresVersion(session("server_version_num", "140009")), statusFail},
		"postgres 15":                      {judgePostgresVersion(session("server_version_num", "150000")), statusOK},
		"a standby":                        {judgeStandby(postgresFacts{Standby: true}), statusFail},
		"a session in another time zone":   {judgeTimeZone(session("TimeZone", "Europe/Berlin")), statusWarn},
		"a commit that waits":              {judgeDurability(session("fsync", "on")), statusOK},
		"a timeout under a second":         {judgeTimeouts(session("lock_timeout", "500")), statusFail},
		"a timeout that is long enough":    {judgeTimeouts(session("statement_timeout", "60000")), statusOK},
		"connections nearly used up":       {judgeConnections(session("", ""), 10), statusWarn},
		"connections for one instance":     {judgeConnections(session("", ""), 60), statusWarn},
		"connections for none":             {judgeConnections(session("", ""), 98), statusFail},
		"a newer database":                 {judgeMigrations(schemas.MigrationState{Unknown: []int64{99}}), statusWarn},
		"an outbox of an hour":             {judgeOutbox(subscriptions.Waiting{News: 1, Oldest: time.Hour}), statusFail},
		"a clock within its uncertainty":   {judgeClock(clockReading{ahead: 2 * time.Second, way: 3 * time.Second}), statusOK},
		"a clock behind by an hour":        {judgeClock(clockReading{ahead: -time.Hour, way: time.Millisecond}), statusFail},
		"a ledger behind by two minutes":   {judgeLedger([]folded{{behind: 2 * time.Minute}}), statusWarn},
		"a ledger behind by an hour":       {judgeLedger([]folded{{}, {behind: time.Hour}}), statusFail},
		"a stream that dropped the unread": {judgeGaps([]folded{{applied: 5, first: 7, last: 9}}), statusFail},
		"a stream that dropped the read":   {judgeGaps([]folded{{applied: 5, first: 6, last: 9}}), statusOK},
		"look-ups of an hour":              {judgeLookups(webhooks.Concerns{Backlog: 1, OldestBacklog: time.Hour}), statusFail},
		"a workspace that pays twice":      {judgeSeveral(webhooks.Concerns{Several: 1}), statusWarn},
		"an event of nobody known":         {judgeEvents(webhooks.Concerns{Unmapped: 1}), statusWarn},
		"renewals late by two minutes":     {judgeRenewals(subscriptions.Concerns{Late: 1, LateFor: 2 * time.Minute}), statusWarn},
		"secrets without a key":            {judgeStripeSettings(Config{StripeWebhookSecrets: NewSecret("x")}), statusWarn},
	} {
		if test.got.status != test.want {
			t.Errorf("%s is %s (%s), want %s", name, test.got.status, test.got.what, test.want)
		}
	}
}

// The page's rows are the table of diagnoses, in its order.
func TestTheDoctorsPageListsEveryCheck(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| `") {
			shown = append(shown, strings.TrimSpace(line))
		}
	}
	var rows []string
	for _, d := range diagnoses() {
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |", d.ID, dash(d.Fails), dash(d.Warns), d.Remedy))
	}
	if diff := cmp.Diff(rows, shown); diff != "" {
		t.Errorf("docs/doctor.md (-want +got):\n%s", diff)
	}
}
