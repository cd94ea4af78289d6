package guard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/headroomhq/headroom/schemas"
)

// DefaultResolveTimeout is how long a limit may take to be read while the lock is held.
const DefaultResolveTimeout = 250 * time.Millisecond

// Resources knows which of an organization's resources are locked since a downgrade.
// usage.Counters is one for pgx.Tx.
type Resources[Tx any] interface {
	// CheckResource is nil for a resource that may be used.
	CheckResource(ctx context.Context, tx Tx, organization, privilege, resource string) error
}

// Options make a Client. Provider is required.
type Options[Tx any] struct {
	Provider Provider
	// Lock is NewProcessLock by default, which serialises this process and no other. Where
	// the zero Tx is nil, as with pgx.Tx, it is required.
	Lock Lock[Tx]
	// Resources refuses guards on a locked Request.Resource, before count; nil asks nobody.
	Resources Resources[Tx]
	// Fallbacks are limits by privilege for while the provider is away. Without one, and
	// that is what most should do, a guard then fails with *ProviderUnavailable.
	Fallbacks map[string]schemas.Limit
	// ResolveTimeout bounds the reading of a limit while the lock is held.
	ResolveTimeout time.Duration
}

// Client holds what guards have in common. It is safe for concurrent use.
type Client[Tx any] struct {
	options Options[Tx]
}

// New checks the options.
func New[Tx any](o Options[Tx]) (*Client[Tx], error) {
	if o.Provider == nil {
		return nil, errors.New("make a guard: Provider is required")
	}
	if o.Lock == nil {
		var zero Tx
		if any(zero) == nil {
			return nil, errors.New("make a guard: Lock is required, because a nil transaction is of no use to count and act")
		}
		o.Lock = NewProcessLock[Tx](ProcessOptions[Tx]{})
	}
	if o.ResolveTimeout <= 0 {
		o.ResolveTimeout = DefaultResolveTimeout
	}
	o.Fallbacks = maps.Clone(o.Fallbacks)
	return &Client[Tx]{options: o}, nil
}

// Domain is where guards of this client exclude each other.
func (c *Client[Tx]) Domain() string { return c.options.Lock.Domain() }

// resolve asks the provider, and makes sure that what it says can be guarded.
func (c *Client[Tx]) resolve(ctx context.Context, r Request) (Resolution, error) {
	resolution, err := c.options.Provider.Resolve(ctx, r.Organization, r.Privilege)
	if err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			// The caller's context: it is the caller who is in a hurry, and no provider away.
			return Resolution{}, fmt.Errorf("learn the limit of %s for %s: %w", r.Privilege, r.Organization, err)
		}
		return c.fallback(r, err)
	}
	if resolution.Kind != KindLimit {
		return resolution, &TypeMismatch{Privilege: r.Privilege, Kind: resolution.Kind}
	}
	return resolution, measurable(r, resolution)
}

// resolveLocked is resolve with a deadline of its own: the lock is held.
func (c *Client[Tx]) resolveLocked(ctx context.Context, r Request) (Resolution, error) {
	bounded, cancel := context.WithTimeoutCause(ctx, c.options.ResolveTimeout, errTooSlow)
	defer cancel()
	resolution, err := c.resolve(bounded, r)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return c.fallback(r, fmt.Errorf("%w (%s): %w", errTooSlow, c.options.ResolveTimeout, err))
	}
	return resolution, err
}

var errTooSlow = errors.New("it was not known in time while the lock was held")

// fallback is what holds when the provider fails: nothing, unless it is away and
// somebody said what to do then.
func (c *Client[Tx]) fallback(r Request, err error) (Resolution, error) {
	var unknown *UnknownPrivilege
	var refused *NotEntitled
	if errors.As(err, &unknown) || errors.As(err, &refused) {
		return Resolution{}, err
	}
	var away *ProviderUnavailable
	if !errors.As(err, &away) {
		away = &ProviderUnavailable{Cause: err, Outage: outage(err)}
	}
	limit, configured := c.options.Fallbacks[r.Privilege]
	if away.Outage && configured {
		return Resolution{Kind: KindLimit, Limit: limit, Source: SourceFallback, Stale: true}, nil
	}
	return Resolution{}, &ProviderUnavailable{
		Organization: r.Organization, Privilege: r.Privilege, Cause: away.Cause, Outage: away.Outage,
	}
}
