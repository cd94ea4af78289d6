package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/schemas"
)

// redisPatience is how long the channel may be silent before Redis is asked whether
// it is there, and then until it has to have answered.
const redisPatience = 3 * time.Second

// RedisInvalidationsOptions are all required but Applied.
type RedisInvalidationsOptions struct {
	Redis redis.UniversalClient
	// Channel is what HEADROOM_REDIS_INVALIDATION_CHANNEL names.
	Channel string
	Plans   PlanCache
	// Applied is that of InvalidationsOptions.
	Applied func(after time.Duration)
	Log     *slog.Logger
}

// RedisInvalidations tells a process's plan cache of every plan.invalidated event on
// a Redis pub/sub channel, for an engine that has no connection to NATS.
//
//	PUBLISH channel event  ─►  Plans.Invalidate
//	subscribed, again      ─►  Plans.Expire
//
// Redis keeps nothing for who is not there, and tells a publisher's loss to nobody:
// a Headroom that cannot reach Redis at the moment of the news does not repeat
// it there. Invalidations misses nothing.
type RedisInvalidations struct {
	options RedisInvalidationsOptions
	hearer  hearer
}

// NewRedisInvalidations does not talk to the server yet.
func NewRedisInvalidations(o RedisInvalidationsOptions) *RedisInvalidations {
	return &RedisInvalidations{options: o, hearer: hearer{plans: o.Plans, applied: o.Applied, log: o.Log}}
}

// Run tells the cache of each event until ctx ends, and then returns nil. While
// Redis is away it tries again, for as long as it takes.
func (r *RedisInvalidations) Run(ctx context.Context) error {
	for failures := 0; ; {
		heard, err := r.listen(ctx)
		if heard {
			failures = 0
		}
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, redis.ErrClosed) {
			return fmt.Errorf("hear invalidations: %w", err)
		}
		if failures == 0 {
			r.options.Log.Warn("invalidations are not heard over redis, plans are read again when they are", "error", err)
		}
		failures++
		pause := time.NewTimer(pauseAfter(failures))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
		}
	}
}

// listen hears events until something is lost, and reports whether any could have
// been heard.
func (r *RedisInvalidations) listen(ctx context.Context) (heard bool, err error) {
	subscription := r.options.Redis.Subscribe(ctx, r.options.Channel)
	stop := context.AfterFunc(ctx, func() { _ = subscription.Close() })
	defer func() {
		if stop() {
			_ = subscription.Close()
		}
	}()
	for asked := false; ; {
		message, err := subscription.ReceiveTimeout(ctx, redisPatience)
		var network net.Error
		switch {
		case err == nil:
			asked = false
			heard = r.take(message) || heard
		case errors.As(err, &network) && network.Timeout() && !asked:
			asked = true
			if err := subscription.Ping(ctx); err != nil {
				return heard, fmt.Errorf("ask redis: %w", err)
			}
		default:
			return heard, fmt.Errorf("read channel %s: %w", r.options.Channel, err)
		}
	}
}

// take reports whether the message is the answer to a subscription: the client
// subscribes again by itself when it lost the connection.
func (r *RedisInvalidations) take(message any) (subscribed bool) {
	switch m := message.(type) {
	case *redis.Subscription:
		r.options.Plans.Expire()
		return true
	case *redis.Message:
		r.hear([]byte(m.Payload))
	}
	return false
}

// hear takes an event that has no subject. One that names no workspace may have
// been about any.
func (r *RedisInvalidations) hear(body []byte) {
	var named struct {
		Data struct {
			WorkspaceID string `json:"workspace_id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &named); err != nil || !schemas.ValidID(named.Data.WorkspaceID) {
		r.options.Plans.Expire()
		r.options.Log.Warn("invalidation names no workspace, all plans are read again", "channel", r.options.Channel, "error", err)
		return
	}
	r.hearer.hear(named.Data.WorkspaceID, body)
}
