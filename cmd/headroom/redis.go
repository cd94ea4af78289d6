package main

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// How long one step with Redis may take, where REDIS_URL does not say. With one
// retry the worst case stays inside the default UNAVAILABLE_BUDGET of 10 s.
const (
	redisDialTimeout  = 2 * time.Second
	redisReadTimeout  = 2 * time.Second
	redisWriteTimeout = time.Second
	redisPoolTimeout  = 2 * time.Second
	redisRetries      = 1
)

// redisTarget is REDIS_URL understood: exactly one of the three is set.
type redisTarget struct {
	Single   *redis.Options
	Cluster  *redis.ClusterOptions
	Sentinel *redis.FailoverOptions
}

// parseRedisURL reads redis://user:password@host:port/db. With several hosts,
// separated by commas or given as ?addr=, it is a Cluster; with ?master_name=
// the hosts are Sentinels. The error repeats nothing of the text.
func parseRedisURL(text string) (redisTarget, error) {
	invalid := errors.New("must be redis://user:password@host:port/db, rediss:// for TLS, with options that go-redis knows; " +
		"several hosts separated by commas for a Cluster, with ?master_name=NAME for Sentinels " +
		"(write special characters of a password as %XX)")
	plain, several, err := singleHostURL(text)
	if err != nil {
		return redisTarget{}, invalid
	}
	query := redisQuery(plain)
	var target redisTarget
	switch {
	case query.Has("master_name"):
		target.Sentinel, err = redis.ParseFailoverURL(plain)
	case several || query.Has("addr"):
		target.Cluster, err = redis.ParseClusterURL(plain)
	default:
		target.Single, err = redis.ParseURL(plain)
	}
	if err != nil {
		return redisTarget{}, invalid
	}
	return target, nil
}

// singleHostURL turns a list of hosts into one URL with the others as ?addr=,
// the form that go-redis reads.
func singleHostURL(text string) (plain string, several bool, err error) {
	parts, err := splitAuthority(text)
	if err != nil {
		return "", false, err
	}
	if parts.Scheme != "redis" && parts.Scheme != "rediss" || slices.ContainsFunc(parts.Hosts, isNoHost) {
		return "", false, errors.New("wrong scheme or host")
	}
	plain = parts.Scheme + "://"
	if parts.User != "" {
		plain += parts.User + "@"
	}
	plain += parts.Hosts[0] + parts.Rest
	more := url.Values{}
	for _, host := range parts.Hosts[1:] {
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), "6379")
		}
		more.Add("addr", host)
	}
	if len(more) == 0 {
		return plain, false, nil
	}
	glue := "?"
	if strings.Contains(parts.Rest, "?") {
		glue = "&"
	}
	return plain + glue + more.Encode(), true, nil
}

// isNoHost reports whether the text is neither a host nor host:port.
func isNoHost(text string) bool {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return text == "" || strings.Contains(text, ":") && !strings.HasPrefix(text, "[")
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return host == "" || err != nil
}

func redisQuery(plain string) url.Values {
	u, err := url.Parse(plain)
	if err != nil {
		return nil
	}
	return u.Query()
}

// newRedis makes the client; it connects when it is first used. Re-sending a
// script is allowed: each stores its outcome and repeats it.
func newRedis(config Config) (redis.UniversalClient, error) {
	target, err := parseRedisURL(config.RedisURL.Reveal())
	if err != nil {
		return nil, err
	}
	pool := 8 + 6*config.Workers
	switch {
	case target.Sentinel != nil:
		return redis.NewFailoverClient(boundSentinel(target.Sentinel, pool)), nil
	case target.Cluster != nil:
		return redis.NewClusterClient(boundCluster(target.Cluster, pool)), nil
	default:
		return redis.NewClient(boundSingle(target.Single, pool)), nil
	}
}

func boundSingle(o *redis.Options, pool int) *redis.Options {
	o.DialTimeout, o.ReadTimeout = cmp.Or(o.DialTimeout, redisDialTimeout), cmp.Or(o.ReadTimeout, redisReadTimeout)
	o.WriteTimeout, o.PoolTimeout = cmp.Or(o.WriteTimeout, redisWriteTimeout), cmp.Or(o.PoolTimeout, redisPoolTimeout)
	o.PoolSize, o.MaxRetries = cmp.Or(o.PoolSize, pool), cmp.Or(o.MaxRetries, redisRetries)
	o.DialerRetries, o.ContextTimeoutEnabled = redisRetries, true
	return o
}

func boundCluster(o *redis.ClusterOptions, pool int) *redis.ClusterOptions {
	o.DialTimeout, o.ReadTimeout = cmp.Or(o.DialTimeout, redisDialTimeout), cmp.Or(o.ReadTimeout, redisReadTimeout)
	o.WriteTimeout, o.PoolTimeout = cmp.Or(o.WriteTimeout, redisWriteTimeout), cmp.Or(o.PoolTimeout, redisPoolTimeout)
	o.PoolSize = cmp.Or(o.PoolSize, pool)
	o.DialerRetries, o.ContextTimeoutEnabled = redisRetries, true
	return o
}

func boundSentinel(o *redis.FailoverOptions, pool int) *redis.FailoverOptions {
	o.DialTimeout, o.ReadTimeout = cmp.Or(o.DialTimeout, redisDialTimeout), cmp.Or(o.ReadTimeout, redisReadTimeout)
	o.WriteTimeout, o.PoolTimeout = cmp.Or(o.WriteTimeout, redisWriteTimeout), cmp.Or(o.PoolTimeout, redisPoolTimeout)
	o.PoolSize, o.MaxRetries = cmp.Or(o.PoolSize, pool), cmp.Or(o.MaxRetries, redisRetries)
	o.DialerRetries, o.ContextTimeoutEnabled = redisRetries, true
	return o
}
