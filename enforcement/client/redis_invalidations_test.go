package client_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/enforcement/client"
	"github.com/headroomhq/headroom/schemas/schematest"
)

func redisClient(t *testing.T, address string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(options)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func hearingRedis(t *testing.T, c *redis.Client, channel string) listener {
	t.Helper()
	l := newListener()
	news := client.NewRedisInvalidations(client.RedisInvalidationsOptions{
		Redis: c, Channel: channel, Plans: l, Log: schematest.Logger(t),
	})
	runs(t, news.Run)
	l.hears(t, expired)
	return l
}

func TestACacheIsToldOfInvalidationsOverRedis(t *testing.T) {
	t.Parallel()
	c := schematest.Redis(t)
	l := hearingRedis(t, c, t.Name())
	for i := range int64(100) {
		if err := c.Publish(t.Context(), t.Name(), eventBody(t, "ws_a", i, time.Now())).Err(); err != nil {
			t.Fatal(err)
		}
		l.hears(t, told{"ws_a", i})
	}
	for body, want := range map[string]told{
		"{":                                     expired,
		`{"data":{"workspace_id":"no id"}}`:     expired,
		`{"data":{"workspace_id":"ws_broken"}}`: {"ws_broken", 0},
	} {
		if err := c.Publish(t.Context(), t.Name(), body).Err(); err != nil {
			t.Fatal(err)
		}
		l.hears(t, want)
	}
	l.quiet(t)
}

func TestALostRedisMakesEverythingBeReadAgain(t *testing.T) {
	t.Parallel()
	server := schematest.RedisServer(t)
	c := redisClient(t, server.URL())
	l := hearingRedis(t, c, "plans")
	for range 2 {
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		again := time.NewTicker(50 * time.Millisecond)
		deadline := time.After(patience)
		for hasExpired, heard := false, false; !heard; {
			select {
			case got := <-l:
				heard = hasExpired && got == told{"ws_after", 1}
				hasExpired = hasExpired || got == expired
			case <-again.C:
				// An error is that it is not back yet.
				_ = c.Publish(t.Context(), "plans", eventBody(t, "ws_after", 1, time.Now())).Err()
			case <-deadline:
				t.Fatalf("nothing was heard again; expired: %v", hasExpired)
			}
		}
		again.Stop()
	}
}
