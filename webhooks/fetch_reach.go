package webhooks

import (
	"context"
	"errors"
	"net/url"
)

// ErrKeyRefused is in the chain of an error after which a person has to act: Stripe
// answers, and the key may not ask.
var ErrKeyRefused = errors.New("stripe refuses the API key")

// Reach makes one call that every sweep makes too, and is nil when Stripe answers it.
func (a *API) Reach(ctx context.Context) error {
	_, err := a.page(ctx, call{path: "/v1/events", query: url.Values{"limit": {"1"}}})
	if answer, ok := errors.AsType[*apiError](err); ok && answer.fault == faultRefused {
		return errors.Join(ErrKeyRefused, err)
	}
	return err
}
