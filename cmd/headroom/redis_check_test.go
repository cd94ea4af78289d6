package main

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/schemas/schematest"
)

func TestARedisIsVettedByWhatItMayEvict(t *testing.T) {
	t.Parallel()
	server := schematest.RedisServer(t)
	options, err := redis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	for _, test := range []struct {
		policy         string
		refused, warns bool
	}{
		{"noeviction", false, false},
		{"volatile-lru", false, true},
		{"volatile-ttl", false, true},
		{"allkeys-lru", true, false},
		{"allkeys-random", true, false},
	} {
		if err := client.ConfigSet(t.Context(), "maxmemory-policy", test.policy).Err(); err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		err := vetRedis(t.Context(), client, slog.New(slog.NewTextHandler(&log, nil)))
		if (err != nil) != test.refused || strings.Contains(log.String(), test.policy) != test.warns {
			t.Errorf("%s: error %v and log %q, want refused %t and warned of %t", test.policy, err, log.String(), test.refused, test.warns)
		}
	}
}
