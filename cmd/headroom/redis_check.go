package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// redisFloor is the oldest major version of Redis supported.
const redisFloor = 7

// vetRedis refuses a server that is too old or may evict keys without an expiry,
// because a counter that vanishes lets a second quota through. It warns of one
// that may evict keys with an expiry. Of a Cluster it asks every primary.
func vetRedis(ctx context.Context, client redis.UniversalClient, log *slog.Logger) error {
	if cluster, ok := client.(*redis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			return vetRedisNode(ctx, node, log)
		})
	}
	return vetRedisNode(ctx, client, log)
}

func vetRedisNode(ctx context.Context, node redis.Cmdable, log *slog.Logger) error {
	text, err := node.Info(ctx).Result()
	if err != nil {
		return fmt.Errorf("ask for the server's version: %w", err)
	}
	info := redisInfo(text)
	version := info["redis_version"]
	if version == "" {
		log.Warn("redis does not tell its version", "needed", redisFloor)
		return nil
	}
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); err != nil || n < redisFloor {
		return refused("the server is Redis %s, Headroom needs %d.0 or later", version, redisFloor)
	}
	switch policy := info["maxmemory_policy"]; {
	case strings.HasPrefix(policy, "allkeys-"):
		return refused("the server's maxmemory-policy is %s, which may delete counters; set it to noeviction", policy)
	case strings.HasPrefix(policy, "volatile-"):
		log.Warn("redis may delete keys that expire when memory is short", "maxmemory_policy", policy, "remedy", "set maxmemory-policy to noeviction")
	}
	return nil
}

// explainTLS tells of the likely cause when nothing answers a client that asks for TLS:
// a Redis without it waits for the end of what it takes for a command.
func explainTLS(err error, address Secret) error {
	if strings.HasPrefix(address.Reveal(), "rediss://") && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w; nothing answered in TLS there, as rediss:// asks for", err)
	}
	return err
}

// redisInfo reads the lines "name:value" of INFO.
func redisInfo(text string) map[string]string {
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ":"); found {
			info[name] = value
		}
	}
	return info
}
