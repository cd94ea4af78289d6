package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

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

// key lies in the slot of the workspace's other keys. The hash keeps it short, and
// what a client sent out of it.
func (r *RedisClaims) key(c Claim) string {
	sum := sha256.Sum256([]byte(c.Token + "\x00" + c.Key))
	return r.prefix + ":{" + c.Workspace + "}:k:" + hex.EncodeToString(sum[:16])
}

// Claim takes the key or tells what holds it, in one round trip. A claim whose reply was
// lost and that is sent again finds itself.
func (r *RedisClaims) Claim(ctx context.Context, c Claim) (string, error) {
	key, pipe := r.key(c), r.client.Pipeline()
	pipe.SetNX(ctx, key, c.Fingerprint, claimLife)
	holder := pipe.Get(ctx, key)
	if _, err := pipe.Exec(ctx); err != nil {
		return "", fmt.Errorf("claim an idempotency key: %w", err)
	}
	return holder.Val(), nil
}
