package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/headroomhq/headroom/enforcement/problems"
	"github.com/headroomhq/headroom/enforcement/usage"
)

// keyField names a request, so that it can be sent again without being done again
// (draft-ietf-httpapi-idempotency-key-header).
const keyField = "Idempotency-Key"

const (
	// claimLife is how long a key is known.
	claimLife = 24 * time.Hour
	// claimPatience is how long a key is looked up: a request with one waits hardly
	// longer, while Redis hangs, than one without.
	claimPatience = 3 * time.Second
	// maxKeyLength is the longest key, in bytes.
	maxKeyLength = 255
)

// Claims remember which request an idempotency key stands for. RedisClaims are some.
type Claims interface {
	// Claim takes the key for the request, for claimLife, unless it is taken, and returns
	// the fingerprint of the request that has it. The error means that nobody knows.
	Claim(ctx context.Context, c Claim) (fingerprint string, err error)
}

// Claim is a key and the request that it stands for. A key is one token's, and counts
// within one workspace.
type Claim struct {
	Token, Workspace, Key string
	// Fingerprint is the same for the same request only.
	Fingerprint string
}

// idempotencyKey is the request's key, empty without one.
func idempotencyKey(h http.Header) (string, *problems.FieldFault) {
	values := h.Values(keyField)
	if len(values) == 0 {
		return "", nil
	}
	if len(values) > 1 {
		return "", &problems.FieldFault{Field: keyField, Detail: "must be sent once"}
	}
	key := values[0]
	visible := key != "" && len(key) <= maxKeyLength
	for i := range len(key) {
		visible = visible && key[i] > ' ' && key[i] < 0x7f
	}
	if !visible {
		return "", &problems.FieldFault{Field: keyField, Detail: "must be 1 to 255 visible ASCII characters"}
	}
	return key, nil
}

// known refuses a key that stands for another request, before anything is done. What it
// lets through is answered the same however often it is asked: an admission and a
// completion with a key are the same event each time, a check takes nothing, and to
// invalidate twice is to invalidate.
func (h *HTTP) known(ctx context.Context, c *exchange) error {
	if c.key == "" {
		return nil
	}
	return checkClaim(ctx, h.claims, c.claim())
}

// checkClaim refuses a key that is held by another request.
func checkClaim(ctx context.Context, claims Claims, claim Claim) error {
	asking, cancel := context.WithTimeout(ctx, claimPatience)
	defer cancel()
	holder, err := claims.Claim(asking, claim)
	if err != nil {
		return problems.New(problems.Unavailable, "the Idempotency-Key cannot be looked up at the moment: nothing was done, ask again").Because(err)
	}
	if holder != claim.Fingerprint {
		return &usage.KeyReused{Key: claim.Key}
	}
	return nil
}

// fingerprint is the same for the same request only.
func fingerprint(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		sum.Write([]byte(part + "\x00"))
	}
	return hex.EncodeToString(sum.Sum(nil))
}
