package webhooks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
)

const (
	// longestPauses bounds how late a look-up is tried again after an outage, and how
	// often with a key that was refused: so many first pauses, a minute by default.
	longestPauses = 120
	// missingTries is how often an object that Stripe does not know is asked for: it may
	// be so new that not all of Stripe knows it.
	missingTries = 3
	// ownTries is how often a fault of Headroom's own is tried before it is given up.
	ownTries = 8
)

// failed says what becomes of a look-up that failed.
//
//	another was faster                   nothing: it is settled
//	Stripe, the way to it, the database  tried again, with growing pauses, for ever
//	the key is refused                   tried again each minute: a person has to act
//	Stripe does not know it              parked after 3 tries
//	it cannot be read                    parked
//	a fault of Headroom's own            dead after 8 tries
//
// An error is one of the database.
func (w *Worker) failed(ctx context.Context, j lookup, err error) error {
	if errors.Is(err, errOvertaken) {
		return nil
	}
	if ctx.Err() != nil {
		// Stopped by its own process: others need not wait for the lease.
		return w.again(context.WithoutCancel(ctx), j, 0, nil)
	}
	if state, final := verdictOf(err, j.attempts+1); final {
		w.log.ErrorContext(ctx, "stripe subscription is given up until a person looks at it", "state", state,
			"subscription_id", j.key.SubscriptionID, "account", j.key.Account, "error", err)
		c := conclusion{verdict: verdict{state: state, reason: reasonOf(err)}}
		if err := w.conclude(ctx, j, c); err != nil && !errors.Is(err, errOvertaken) {
			return err
		}
		return nil
	}
	pause := w.pauseAfter(j.attempts, err)
	w.tell(ctx, err, slog.String("subscription_id", j.key.SubscriptionID), slog.String("account", j.key.Account),
		slog.Int("attempts", j.attempts+1), slog.Duration("again_in", pause))
	return w.again(ctx, j, pause, err)
}

// tell logs a failure that is tried again.
func (w *Worker) tell(ctx context.Context, err error, about ...slog.Attr) {
	w.tally.retries.Add(1)
	about = append(about, slog.Any("error", err))
	if isFault(err, faultRefused) {
		w.tally.held.Add(1)
		w.log.LogAttrs(ctx, slog.LevelError, "stripe refuses the API key: events are held until it may read what they are about", about...)
		return
	}
	w.log.LogAttrs(ctx, slog.LevelWarn, "stripe look-up failed and is tried again", about...)
}

// verdictOf is what becomes of what failed for the n-th time, if it is final.
func verdictOf(err error, tries int) (state string, final bool) {
	var unreadable *undecodable
	switch {
	case errors.As(err, &unreadable):
		return StateParked, true
	case isFault(err, faultMissing):
		return StateParked, tries >= missingTries
	case errors.Is(err, subscriptions.ErrInvalidState), errors.Is(err, subscriptions.ErrUnknownPlan):
		return StateDead, tries >= ownTries
	default:
		return "", false
	}
}

func reasonOf(err error) string {
	if isFault(err, faultMissing) {
		return tidy(err.Error()) + ": the API key may be of another account or mode"
	}
	return tidy(err.Error())
}

// pauseAfter grows from the first pause to the longest, with a jitter so that what
// failed at once does not come back at once, and never before Stripe asks for it.
func (w *Worker) pauseAfter(attempts int, err error) time.Duration {
	longest := w.options.Pause * longestPauses
	pause := min(w.options.Pause<<min(attempts, 7), longest)
	var api *apiError
	asked := errors.As(err, &api)
	if asked && api.fault == faultRefused {
		pause = longest
	}
	pause = pause/2 + rand.N(pause) //nolint:gosec // only spreads the load
	if asked {
		pause += api.wait
	}
	return pause
}

// again lets a look-up be due after a pause, unless it is settled meanwhile. Without an
// error it was not tried.
func (w *Worker) again(ctx context.Context, j lookup, pause time.Duration, cause error) error {
	args := j.key.args()
	args["generation"], args["at"], args["tried"], args["error"] = j.generation, w.now().UTC().Add(pause), cause != nil, ""
	if cause != nil {
		args["error"] = tidy(cause.Error())
	}
	_, err := w.ledger.pool.Exec(ctx, `UPDATE stripe_sync_requests SET next_attempt_at = @at,
			attempts = attempts + CASE WHEN @tried THEN 1 ELSE 0 END, last_error = @error
		WHERE account = @account AND livemode = @livemode AND subscription_id = @subscription
			AND synced_generation < @generation`, args)
	if err != nil {
		return fmt.Errorf("put off the look-up of subscription %s: %w", j.key.SubscriptionID, err)
	}
	w.wakeAfter(pause)
	return nil
}

// wakeAfter has this process look again when a pause is over that is shorter than the
// one between its glances.
func (w *Worker) wakeAfter(pause time.Duration) {
	if pause < glance {
		time.AfterFunc(pause, w.ledger.wake)
	}
}
