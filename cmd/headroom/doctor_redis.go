package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/enforcement"
)

func redisDiagnoses() []diagnosis {
	const service = "redis"
	return []diagnosis{
		{
			"redis.reachable", service, "no server answers, or it does not let Headroom in, or it still loads its file", "",
			"start the server, or correct HEADROOM_REDIS_URL",
		},
		{
			"redis.version", service, "the server is older than Redis 7.0", "the server does not tell its version",
			"upgrade to Redis 7.0 or later, or to a server that speaks like one",
		},
		{
			"redis.eviction", service, "maxmemory-policy is one of `allkeys-*`: counters may be deleted and a second quota let through", "it is one of `volatile-*`, which deletes leases and outcomes",
			"set maxmemory-policy to noeviction, in redis.conf and with CONFIG SET",
		},
		{
			"redis.persistence", service, "the server could not write its append-only file, and refuses writes", "there is no append-only file, or it is left to the system when it is synced: a restart comes back empty, or with counters of long ago",
			"set appendonly to yes and appendfsync to everysec; if writing failed, see the disk and the server's log",
		},
		{
			"redis.primary", service, "HEADROOM_REDIS_URL leads to a replica, which takes no writes", "a replica is not connected, or more than 10 s behind",
			"let HEADROOM_REDIS_URL name the primary, or the Sentinels with ?master_name=; see the replica's log",
		},
		{
			"redis.memory", service, "95 % of maxmemory is used: writes are about to be refused", "80 %",
			"raise maxmemory, or add primaries to the Cluster; nothing else should be in this Redis",
		},
		{
			"redis.cluster", service, "the Cluster is not whole: some workspaces cannot be decided about", "the server is of a Cluster and HEADROOM_REDIS_URL names one server only",
			"see CLUSTER INFO and CLUSTER NODES, and bring back the primary that is away; name several servers of the Cluster in HEADROOM_REDIS_URL",
		},
		{
			"redis.scripts", service, "the server does not take Headroom's scripts", "",
			"allow EVAL, EVALSHA and SCRIPT to Headroom's user (ACL SETUSER), and take a server with Lua scripts",
		},
	}
}

// redisPatient is a Redis that answers, and what its primaries say of themselves.
type redisPatient struct {
	client redis.UniversalClient
	nodes  []redisNode
}

// redisNode is one server: INFO, and what CONFIG and CLUSTER INFO tell where they are allowed.
type redisNode struct {
	addr           string
	info           map[string]string
	fsync, cluster string
}

func (d *doctor) reachRedis(ctx context.Context) {
	if d.faulty["HEADROOM_REDIS_URL"] {
		d.found("redis.reachable", fails("not checked: HEADROOM_REDIS_URL has a fault"))
		return
	}
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	client, err := newRedis(d.config)
	if err != nil {
		d.found("redis.reachable", unasked(err))
		return
	}
	nodes, err := askRedis(ctx, client)
	if err != nil {
		_ = client.Close() // nothing waits in it
		d.found("redis.reachable", fails("no server answers at %s: %v", d.config.RedisURL, err).with("error", err.Error()))
		return
	}
	d.redis = &redisPatient{client: client, nodes: nodes}
	d.found("redis.reachable", passes("%s at %s", counted(len(nodes), "server"), d.config.RedisURL).with("servers", len(nodes)))
}

func askRedis(ctx context.Context, client redis.UniversalClient) ([]redisNode, error) {
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		node, err := askRedisNode(ctx, client)
		return []redisNode{node}, err
	}
	var (
		mu    sync.Mutex
		nodes []redisNode
	)
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, of *redis.Client) error {
		node, err := askRedisNode(ctx, of)
		node.addr = of.Options().Addr
		mu.Lock()
		defer mu.Unlock()
		nodes = append(nodes, node)
		return err
	})
	return nodes, err
}

func askRedisNode(ctx context.Context, client redis.Cmdable) (redisNode, error) {
	text, err := client.Info(ctx).Result()
	if err != nil {
		return redisNode{}, err
	}
	node := redisNode{info: redisInfo(text)}
	if node.info["loading"] == "1" {
		return node, fmt.Errorf("the server is loading its file")
	}
	// Both may be forbidden, and are then not judged.
	if settings, err := client.ConfigGet(ctx, "appendfsync").Result(); err == nil {
		node.fsync = settings["appendfsync"]
	}
	if node.info["cluster_enabled"] == "1" {
		if text, err := client.ClusterInfo(ctx).Result(); err == nil {
			node.cluster = redisInfo(text)["cluster_state"]
		}
	}
	return node, nil
}

// redisChecks judge each primary and report the worst.
func (d *doctor) redisChecks() []examination {
	if d.redis == nil {
		return nil
	}
	p := d.redis
	_, isCluster := p.client.(*redis.ClusterClient)
	each := func(judge func(redisNode) judgement) func(context.Context) judgement {
		return func(context.Context) judgement { return p.worst(judge) }
	}
	return []examination{
		{"redis.version", each(judgeRedisVersion)},
		{"redis.eviction", each(judgeEviction)},
		{"redis.persistence", each(judgePersistence)},
		{"redis.primary", each(judgePrimary)},
		{"redis.memory", each(judgeRedisMemory)},
		{"redis.cluster", each(func(n redisNode) judgement { return judgeCluster(isCluster, n) })},
		{"redis.scripts", func(ctx context.Context) judgement {
			loaded, err := enforcement.LoadScripts(ctx, p.client)
			if err != nil {
				return fails("%v", err).with("loaded", loaded)
			}
			return passes("%s loaded", counted(loaded, "script")).with("loaded", loaded)
		}},
	}
}

func (p *redisPatient) worst(judge func(redisNode) judgement) judgement {
	var all []judgement
	for _, node := range p.nodes {
		j := judge(node)
		if node.addr != "" {
			j = j.with("server", node.addr)
		}
		all = append(all, j)
	}
	return worst(all...)
}

func judgeRedisVersion(n redisNode) judgement {
	version := n.info["redis_version"]
	major, _, _ := strings.Cut(version, ".")
	j := passes("Redis %s", version)
	if number, err := strconv.Atoi(major); version == "" {
		j = warns("the server does not tell its version; Headroom needs Redis %d.0", redisFloor)
	} else if err != nil || number < redisFloor {
		j = fails("the server is Redis %s, Headroom needs %d.0 or later", version, redisFloor)
	}
	return j.with("version", version)
}

func judgeEviction(n redisNode) judgement {
	policy := n.info["maxmemory_policy"]
	j := passes("maxmemory-policy is %s", policy)
	switch {
	case strings.HasPrefix(policy, "allkeys-"):
		j = fails("maxmemory-policy is %s, which may delete counters", policy)
	case strings.HasPrefix(policy, "volatile-"):
		j = warns("maxmemory-policy is %s, which may delete keys that expire", policy)
	case policy == "":
		j = unknowable("the server does not tell its maxmemory-policy: see that it is noeviction")
	}
	return j.with("maxmemory_policy", policy)
}

func judgePersistence(n redisNode) judgement {
	aof := n.info["aof_enabled"] == "1"
	j := passes("there is an append-only file, synced %s", n.fsync)
	switch {
	case aof && n.info["aof_last_write_status"] == "err":
		j = fails("the server could not write its append-only file")
	case n.info["aof_enabled"] == "":
		j = unknowable("the server does not tell whether it keeps an append-only file")
	case aof && n.fsync == "":
		j = unknowable("there is an append-only file; when it is synced is not told: see that appendfsync is everysec or always")
	case aof && n.fsync == "no":
		j = warns("there is an append-only file, and appendfsync is no: a power cut loses up to half a minute")
	case !aof:
		j = warns("there is no append-only file: a restart comes back empty, or with the counters of the last snapshot (%s)", snapshotTime(n.info["rdb_last_save_time"]))
	}
	return j.with("appendonly", aof).with("appendfsync", n.fsync).with("last_snapshot", snapshotTime(n.info["rdb_last_save_time"]))
}

// snapshotTime reads seconds since 1970.
func snapshotTime(text string) string {
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return ""
	}
	return instant(time.Unix(seconds, 0))
}

// replicaBehind is how many seconds a replica may be silent: a healthy one is heard each second.
const replicaBehind = 10

func judgePrimary(n redisNode) judgement {
	role := n.info["role"]
	if role == "slave" {
		return fails("the server is a replica of %s:%s", n.info["master_host"], n.info["master_port"]).with("role", "replica").with("replicas", 0)
	}
	var late []string
	replicas, _ := strconv.Atoi(n.info["connected_slaves"])
	for i := range replicas {
		state := replicaState(n.info["slave"+strconv.Itoa(i)])
		if lag, _ := strconv.Atoi(state["lag"]); state["state"] != "online" || lag > replicaBehind {
			late = append(late, fmt.Sprintf("%s:%s (%s, heard %s s ago)", state["ip"], state["port"], state["state"], state["lag"]))
		}
	}
	j := passes("the server is a primary with %s", counted(replicas, "connected replica"))
	if len(late) > 0 {
		j = warns("a replica is behind: %s", several(late))
	}
	return j.with("role", "primary").with("replicas", replicas).with("behind", list(late))
}

// replicaState reads "ip=127.0.0.1,port=6380,state=online,offset=14,lag=0".
func replicaState(text string) map[string]string {
	state := make(map[string]string)
	for field := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(field, "=")
		state[name] = value
	}
	return state
}

func judgeRedisMemory(n redisNode) judgement {
	used, _ := strconv.ParseInt(n.info["used_memory"], 10, 64)
	most, _ := strconv.ParseInt(n.info["maxmemory"], 10, 64)
	j := passes("%d bytes are used; maxmemory sets no bound", used)
	if most > 0 {
		j = judged(byShare(float64(used), float64(most)), "%d of maxmemory's %d bytes are used", used, most)
	}
	return j.with("used", used).with("maxmemory", most)
}

func judgeCluster(asCluster bool, n redisNode) judgement {
	enabled := n.info["cluster_enabled"] == "1"
	j := passes("the server stands alone")
	switch {
	case enabled && n.cluster != "" && n.cluster != "ok":
		j = fails("cluster_state is %s", n.cluster)
	case enabled && !asCluster:
		j = warns("the server is of a Cluster, and HEADROOM_REDIS_URL names one server")
	case asCluster && !enabled:
		j = fails("HEADROOM_REDIS_URL names a Cluster, and the server is not of one")
	case enabled:
		j = passes("the Cluster is whole")
	}
	return j.with("cluster", enabled).with("state", n.cluster)
}
