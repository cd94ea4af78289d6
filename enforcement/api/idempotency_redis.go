package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// RedisClaims keep idempotency keys in Redis, each for a day. A Redis that loses its
// memory loses the keys with it: a request that comes again is then a new one, except
// that an admission with its key still is the same event, and so gets the decision
// that Redis or the ledger remembers; and that another request under an old key is not
// noticed.
type RedisClaims struct {
	client redis.UniversalClient
	prefix string
}

// NewRedisClaims are claims under the prefix of all keys.
func NewRedisClaims(client redis.UniversalClient, prefix string) *RedisClaims {
	return &RedisClaims{client: client, prefix: prefix}
}

// fingerprintLength is the fixed beginning of a value: the hash in hex.
const fingerprintLength = 2 * sha256.Size

// key lies in the slot of the workspace's other keys. The hash keeps it short, and
// what a client sent out of it.
func (r *RedisClaims) key(c Claim) string {
	sum := sha256.Sum256([]byte(c.Token + "\x00" + c.Key))
	return r.prefix + ":{" + c.Workspace + "}:k:" + hex.EncodeToString(sum[:16])
}

// Claim takes the key or tells what holds it, in one round trip. A claim whose reply
// was lost looks like another's of the same request.
func (r *RedisClaims) Claim(ctx context.Context, c Claim, hold time.Duration) (Held, error) {
	key, pipe := r.key(c), r.client.Pipeline()
	taken := pipe.SetNX(ctx, key, c.Fingerprint, hold)
	value := pipe.Get(ctx, key)
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return Held{}, fmt.Errorf("claim an idempotency key: %w", err)
	}
	text, err := value.Result()
	if err != nil || len(text) < fingerprintLength {
		return Held{}, fmt.Errorf("claim an idempotency key: it holds %d bytes: %w", len(text), errors.Join(err, redis.Nil))
	}
	held := Held{New: taken.Val(), Fingerprint: text[:fingerprintLength]}
	if len(text) > fingerprintLength {
		held.Answer = []byte(text[fingerprintLength:])
	}
	return held, nil
}

// Keep writes the answer behind the fingerprint.
func (r *RedisClaims) Keep(ctx context.Context, c Claim, answer []byte) error {
	if err := r.client.Set(ctx, r.key(c), c.Fingerprint+string(answer), claimLife).Err(); err != nil {
		return fmt.Errorf("keep an answer with its idempotency key: %w", err)
	}
	return nil
}

// Forget drops the key.
func (r *RedisClaims) Forget(ctx context.Context, c Claim) error {
	if err := r.client.Del(ctx, r.key(c)).Err(); err != nil {
		return fmt.Errorf("give an idempotency key back: %w", err)
	}
	return nil
}
