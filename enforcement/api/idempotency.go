package api

import (
	"context"
	"net/http"
	"time"

	"github.com/headroomhq/headroom/enforcement/usage"
)

// keyField names a request, so that it can be sent again without being done again
// (draft-ietf-httpapi-idempotency-key-header).
const keyField = "Idempotency-Key"

const (
	// claimLife is how long a key is known.
	claimLife = 24 * time.Hour
	// maxKeyLength is the longest key, in bytes.
	maxKeyLength = 255
)

// Claims remember which request an idempotency key stands for. RedisClaims are some.
type Claims interface {
	// Claim takes the key for the request, for so long, unless it is taken; in either
	// case it is told what holds it. The error means that nobody knows.
	Claim(ctx context.Context, c Claim, hold time.Duration) (Held, error)
	// Keep remembers the answer with the key, for claimLife.
	Keep(ctx context.Context, c Claim, answer []byte) error
	// Forget gives the key back, so that the request can be made again.
	Forget(ctx context.Context, c Claim) error
}

// Claim is a key and the request that it stands for. A key is one token's, and counts
// within one workspace.
type Claim struct {
	Token, Workspace, Key string
	// Fingerprint is the same for the same request only.
	Fingerprint string
}

// Held is what a key stands for.
type Held struct {
	// New is true when it is this very claim.
	New         bool
	Fingerprint string
	// Answer is what the request was answered, nil while it was not.
	Answer []byte
}

// idempotencyKey is the request's key, empty without one.
func idempotencyKey(h http.Header) (string, *FieldFault) {
	values := h.Values(keyField)
	if len(values) == 0 {
		return "", nil
	}
	if len(values) > 1 {
		return "", &FieldFault{Field: keyField, Detail: "must be sent once"}
	}
	key := values[0]
	visible := key != "" && len(key) <= maxKeyLength
	for i := range len(key) {
		visible = visible && key[i] > ' ' && key[i] < 0x7f
	}
	if !visible {
		return "", &FieldFault{Field: keyField, Detail: "must be 1 to 255 visible ASCII characters"}
	}
	return key, nil
}

// once makes act happen once for a key: whoever comes again with it is told the same.
// What failed can be tried again. Without a key act simply happens.
func (h *HTTP) once(ctx context.Context, c *call, act func(context.Context) ([]byte, error)) ([]byte, error) {
	if c.key == "" {
		return act(ctx)
	}
	claim := c.claim()
	// Long enough for act, which the deadline ends, and short enough for who comes after a crash.
	held, err := h.hold(ctx, claim, 2*h.timeout)
	if err != nil {
		return nil, err
	}
	if !held.New {
		if held.Answer == nil {
			return nil, problem(slugKeyInUse, "the first request with this Idempotency-Key has no answer yet; ask again in a moment")
		}
		return held.Answer, nil
	}
	answer, err := act(ctx)
	// What was done is done, whether the client still listens or not.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.timeout)
	defer cancel()
	if err != nil {
		if forgot := h.claims.Forget(ctx, claim); forgot != nil {
			h.log.Warn("an idempotency key stays taken for a while", "workspace_id", claim.Workspace, "error", forgot)
		}
		return nil, err
	}
	if err := h.claims.Keep(ctx, claim, answer); err != nil {
		h.log.Warn("an answer was given and not kept with its idempotency key", "workspace_id", claim.Workspace, "error", err)
	}
	return answer, nil
}

// known refuses a key that stands for another request. It is for what is answered the
// same however often it is asked.
func (h *HTTP) known(ctx context.Context, c *call) error {
	if c.key == "" {
		return nil
	}
	_, err := h.hold(ctx, c.claim(), claimLife)
	return err
}

func (h *HTTP) hold(ctx context.Context, claim Claim, life time.Duration) (Held, error) {
	held, err := h.claims.Claim(ctx, claim, life)
	if err != nil {
		return Held{}, problem(slugUnavailable, "the Idempotency-Key cannot be looked up at the moment: nothing was done, ask again").because(err)
	}
	if held.Fingerprint != claim.Fingerprint {
		return Held{}, &usage.KeyReused{Key: claim.Key}
	}
	return held, nil
}
