package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

func TestARedisURLNamesOneServerAClusterOrSentinels(t *testing.T) {
	t.Parallel()
	type target struct {
		Kind     string
		Addrs    []string
		DB       int
		User     string
		Password string
		Master   string
		TLS      bool
	}
	for name, test := range map[string]struct {
		url  string
		want target
	}{
		"one server":     {"redis://127.0.0.1:6379/2", target{Kind: "single", Addrs: []string{"127.0.0.1:6379"}, DB: 2}},
		"default port":   {"redis://cache", target{Kind: "single", Addrs: []string{"cache:6379"}}},
		"with tls":       {"rediss://u:p@cache:6380", target{Kind: "single", Addrs: []string{"cache:6380"}, User: "u", Password: "p", TLS: true}},
		"an ipv6 server": {"redis://[::1]:6379", target{Kind: "single", Addrs: []string{"[::1]:6379"}}},
		"several hosts are a cluster": {
			"redis://u:p@a:7000,b:7001,c",
			target{Kind: "cluster", Addrs: []string{"a:7000", "b:7001", "c:6379"}, User: "u", Password: "p"},
		},
		"several hosts and options": {
			"redis://a:7000,b:7001/?read_timeout=3s",
			target{Kind: "cluster", Addrs: []string{"a:7000", "b:7001"}},
		},
		"addr as go-redis has it": {
			"redis://a:7000?addr=b:7001", target{Kind: "cluster", Addrs: []string{"a:7000", "b:7001"}},
		},
		"master_name makes sentinels": {
			"redis://a:26379,b:26379/1?master_name=mymaster",
			target{Kind: "sentinel", Addrs: []string{"a:26379", "b:26379"}, DB: 1, Master: "mymaster"},
		},
		"one sentinel": {
			"redis://a:26379?master_name=mymaster", target{Kind: "sentinel", Addrs: []string{"a:26379"}, Master: "mymaster"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parsed, err := parseRedisURL(test.url)
			if err != nil {
				t.Fatal(err)
			}
			var got target
			switch {
			case parsed.Single != nil:
				o := parsed.Single
				got = target{"single", []string{o.Addr}, o.DB, o.Username, o.Password, "", o.TLSConfig != nil}
			case parsed.Cluster != nil:
				o := parsed.Cluster
				got = target{"cluster", o.Addrs, 0, o.Username, o.Password, "", o.TLSConfig != nil}
			case parsed.Sentinel != nil:
				o := parsed.Sentinel
				got = target{"sentinel", o.SentinelAddrs, o.DB, o.Username, o.Password, o.MasterName, o.TLSConfig != nil}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("target differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestARedisURLThatNamesNothingIsRefusedWithoutShowingIt(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "localhost:6379", "http://h:1", "redis://", "redis://a:1,,b:2", "redis://h:port", "redis://h/notanumber",
		"redis://h/?no_such_option=" + password, "redis://:" + password + "/x@h", "redis://" + password + "@h:1:2",
	} {
		if _, err := parseRedisURL(text); err == nil || strings.Contains(err.Error(), password) {
			t.Errorf("%q: error is %v, want one without the password", text, err)
		}
	}
}

func TestEveryKindOfRedisClientAnswersWithinTheBudget(t *testing.T) {
	t.Parallel()
	type bounds struct {
		Dial, Read, Write, Pool time.Duration
		Size                    int
		Context                 bool
	}
	tight := bounds{redisDialTimeout, redisReadTimeout, redisWriteTimeout, redisPoolTimeout, 20, true}
	own := bounds{time.Second, 3 * time.Second, 4 * time.Second, 5 * time.Second, 7, true}
	const options = "dial_timeout=1s&read_timeout=3s&write_timeout=4s&pool_timeout=5s&pool_size=7"
	for name, test := range map[string]struct {
		url  string
		want bounds
	}{
		"single":               {"redis://h", tight},
		"cluster":              {"redis://a,b", tight},
		"single, as told":      {"redis://h?" + options, own},
		"cluster, as told":     {"redis://a,b?" + options, own},
		"sentinel":             {"redis://h?master_name=m", tight},
		"sentinel, as told":    {"redis://h?master_name=m&" + options, own},
		"several sentinels":    {"redis://a,b?master_name=m", tight},
		"an explicit database": {"redis://h/3", tight},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, err := newRedis(Config{RedisURL: NewSecret(test.url), Workers: 2})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = client.Close() }()
			var got bounds
			switch c := client.(type) {
			case *redis.Client:
				o := c.Options()
				got = bounds{o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout, o.PoolSize, o.ContextTimeoutEnabled}
			case *redis.ClusterClient:
				o := c.Options()
				got = bounds{o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout, o.PoolSize, o.ContextTimeoutEnabled}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("bounds differ (-want +got):\n%s", diff)
			}
		})
	}
}
