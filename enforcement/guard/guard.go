package guard

import (
	"context"
	"errors"
	"sync/atomic"
)

// inside is the key of what marks the context of a callback: an *atomic.Bool that is
// true until the guard has ended. What act leaves running may guard after that.
type inside struct{}

// Guard calls count and then act with the organization's lock on the privilege held, so
// that no other guard of the same key comes between them, and act only if the limit
// has room for what is requested. It returns act's result, and what was decided on.
//
//	lock ─► resolve ─► count ─► check ─┬─► act ─► commit ─► release
//	                                   └─► *EntitlementLimitExceeded
//
// The errors of count, act and Options.Resources reach the caller as they are. The
// others are those of errors.go. Except after an *OutcomeUnknown and an ErrEnded,
// an error means that nothing of act is stored, if the lock has transactions: the
// in-process lock has none of its own, and then what act did before it failed stays.
//
// Count and act get a context that knows of the guard: with it, a guard inside of
// a guard is ErrNested. A lock that retries may call them again.
func Guard[T, Tx any](ctx context.Context, client *Client[Tx], r Request, callbacks Callbacks[T, Tx]) (T, Details, error) {
	var result, none T
	if callbacks.Count == nil || callbacks.Act == nil {
		return none, Details{Request: r}, &InvalidArgument{Field: "callbacks", Detail: "lack count or act"}
	}
	details, err := client.run(ctx, r, steps[Tx]{
		count: callbacks.Count,
		act: func(ctx context.Context, tx Tx) error {
			var err error
			result, err = callbacks.Act(ctx, tx)
			return err
		},
	})
	if err != nil {
		return none, details, err
	}
	return result, details, nil
}

// steps are the callbacks without the type of the result.
type steps[Tx any] struct {
	count func(ctx context.Context, tx Tx) (Usage, error)
	act   func(ctx context.Context, tx Tx) error
}

func (c *Client[Tx]) run(ctx context.Context, r Request, s steps[Tx]) (Details, error) {
	details := Details{Request: r, Domain: c.options.Lock.Domain()}
	if err := r.check(); err != nil {
		return details, err
	}
	if running, ok := ctx.Value(inside{}).(*atomic.Bool); ok && running.Load() {
		return details, ErrNested
	}
	key, err := NewKey(r.Organization, r.Privilege)
	if err != nil {
		return details, err
	}
	// Wrong kinds are told before the lock, and what has to be fetched is fetched.
	if details.Resolution, err = c.resolve(ctx, r); err != nil {
		return details, err
	}
	ran := false
	err = c.options.Lock.Run(ctx, key, func(ctx context.Context, tx Tx) error {
		ran = true
		running := &atomic.Bool{}
		running.Store(true)
		defer running.Store(false)
		var err error
		details, err = c.locked(context.WithValue(ctx, inside{}, running), tx, r, s)
		return err
	})
	if err == nil && !ran {
		return details, &LockUnavailable{Key: key.String(), Domain: details.Domain, Cause: errNotCalled}
	}
	return details, err
}

var errNotCalled = errors.New("it reported success and ran nothing")

// locked is what happens while the lock is held.
func (c *Client[Tx]) locked(ctx context.Context, tx Tx, r Request, s steps[Tx]) (Details, error) {
	details := Details{Request: r, Domain: c.options.Lock.Domain()}
	var err error
	if details.Resolution, err = c.resolveLocked(ctx, r); err != nil {
		return details, err
	}
	if c.options.Resources != nil && r.Resource != "" {
		if err := c.options.Resources.CheckResource(ctx, tx, r.Organization, r.Privilege, r.Resource); err != nil {
			return details, err
		}
	}
	usage, err := s.count(ctx, tx)
	if err != nil {
		return details, err
	}
	domain := details.Domain
	details, err = within(r, details.Resolution, usage)
	details.Domain = domain
	if err != nil {
		var exceeded *EntitlementLimitExceeded
		if errors.As(err, &exceeded) {
			exceeded.Details.Domain = domain
		}
		return details, err
	}
	return details, s.act(ctx, tx)
}
