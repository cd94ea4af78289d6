package webhooks

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v4"
)

const (
	// maxBody is the largest body that is read, 1 MiB. Stripe's own stay far below.
	maxBody = 1 << 20
	// storePatience is how long a delivery may take to be stored. Stripe sends again
	// what was not, and a request that hangs is worth nothing to it.
	storePatience = 2 * time.Second
	storePause    = 100 * time.Millisecond
	// readPatience is how long a body may take to arrive: nobody has shown yet that it is
	// Stripe's, and a process that ends waits for those who are inside.
	readPatience = 5 * time.Second
	// retryAfter is what a sender hears in seconds while nothing can be stored.
	retryAfter = "5"
)

// DoorOptions are what a Door is made of. All are needed.
type DoorOptions struct {
	// Secrets are the endpoint's signing secrets, several during a rotation.
	Secrets []string
	// Ledger stores what arrives.
	Ledger *Ledger
	// Log hears of each delivery once.
	Log *slog.Logger
	// Now is the clock that signatures are held against.
	Now func() time.Time
}

// Door is the handler of POST /webhooks/stripe. An answer means:
//
//	200  verified and stored, whatever became of it: Stripe never has to send it again
//	400  the signature does not hold, or the body did not arrive whole
//	405  not a POST
//	413  more than 1 MiB
//	503  verified but not stored: Stripe sends it again, for up to three days
//
// Nothing but Postgres is asked before the answer. It is safe for concurrent use.
type Door struct {
	verifier verifier
	ledger   *Ledger
	log      *slog.Logger
	now      func() time.Time
}

// NewDoor makes a Door. The error names HEADROOM_STRIPE_WEBHOOK_SECRETS and every
// fault of it, and contains no secret.
func NewDoor(o DoorOptions) (*Door, error) {
	v, err := newVerifier(o.Secrets)
	if err != nil {
		return nil, err
	}
	return &Door{verifier: v, ledger: o.Ledger, log: o.Log, now: o.Now}, nil
}

// refusal is an answer that is none of 200.
type refusal struct {
	status int
	detail string
	cause  error
}

// ServeHTTP answers one delivery.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h, refused := d.verified(w, r)
	if refused != nil {
		d.refuse(r.Context(), w, *refused)
		return
	}
	stored, err := d.store(r.Context(), h)
	if err != nil {
		d.refuse(r.Context(), w, refusal{http.StatusServiceUnavailable, "the event could not be stored: send it again", err})
		return
	}
	d.tell(r.Context(), h, stored)
	answer(w, http.StatusOK, "application/json", map[string]string{"state": stored.State})
}

// store tries for as long as the sender has patience: what it has to send again comes
// an hour later, and a restart of Postgres or a connection that it left behind is
// over in a second. That the sender hangs up does not undo the delivery.
func (d *Door) store(ctx context.Context, h hit) (recorded, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storePatience)
	defer cancel()
	return backoff.RetryWithData(func() (recorded, error) { return d.ledger.record(ctx, h) },
		backoff.WithContext(backoff.NewConstantBackOff(storePause), ctx))
}

// verified is a delivery whose signature holds.
func (d *Door) verified(w http.ResponseWriter, r *http.Request) (hit, *refusal) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return hit{}, &refusal{status: http.StatusMethodNotAllowed, detail: "send a POST"}
	}
	arrived := d.now()
	body, refused := readBody(w, r)
	if refused != nil {
		return hit{}, refused
	}
	made, err := d.verifier.verify(body, r.Header.Get("Stripe-Signature"), arrived)
	if err != nil {
		return hit{}, &refusal{status: http.StatusBadRequest, detail: err.Error()}
	}
	return hit{
		body: body, sha256: sha256.Sum256(body), at: arrived,
		signedAt: &made.signedAt, secret: made.secret, origin: originWebhook,
	}, nil
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *refusal) {
	// What has no connection of its own cannot be late.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readPatience))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &refusal{status: http.StatusRequestEntityTooLarge, detail: fmt.Sprintf("the body is larger than %d bytes", maxBody)}
	case err != nil:
		return nil, &refusal{status: http.StatusBadRequest, detail: "the body did not arrive whole", cause: err}
	default:
		return body, nil
	}
}

// answered is the one line that the log has of each delivery.
const answered = "stripe delivery answered"

func (d *Door) tell(ctx context.Context, h hit, stored recorded) {
	level := slog.LevelInfo
	if stored.State == StateParked {
		level = slog.LevelWarn
	}
	d.log.LogAttrs(ctx, level, answered,
		slog.Int("status", http.StatusOK), slog.String("state", stored.State), slog.String("reason", stored.reason),
		slog.String("event_id", stored.id), slog.String("event_type", stored.kind), slog.String("account", stored.account),
		slog.String("api_version", stored.apiVersion), slog.Bool("duplicate", !stored.first), slog.Bool("altered", stored.altered),
		slog.String("secret", h.secret), slog.Int("bytes", len(h.body)), slog.Duration("took", d.now().Sub(h.at)))
}

// refuse answers with a problem (RFC 9457).
func (d *Door) refuse(ctx context.Context, w http.ResponseWriter, r refusal) {
	level := slog.LevelWarn
	if r.status == http.StatusServiceUnavailable {
		level = slog.LevelError
		w.Header().Set("Retry-After", retryAfter)
	}
	attrs := []slog.Attr{slog.Int("status", r.status), slog.String("reason", r.detail)}
	if r.cause != nil {
		attrs = append(attrs, slog.Any("error", r.cause))
	}
	d.log.LogAttrs(ctx, level, answered, attrs...)
	answer(w, r.status, "application/problem+json", map[string]any{
		"type": "about:blank", "title": http.StatusText(r.status), "status": r.status, "detail": r.detail,
	})
}

func answer(w http.ResponseWriter, status int, contentType string, body any) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	// Who hung up does not hear the answer.
	_ = json.NewEncoder(w).Encode(body)
}
