package guard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"
)

// DefaultLockTimeout is how long a lock waits for those who hold the key.
const DefaultLockTimeout = 5 * time.Second

// ProcessOptions are the settings of a ProcessLock. Each may be left out.
type ProcessOptions[Tx any] struct {
	// Transact calls fn with a tx, and returns what fn returned; it may begin a transaction
	// before and commit it after fn returned nil. Nil calls fn with the zero Tx.
	Transact func(ctx context.Context, fn func(ctx context.Context, tx Tx) error) error
	// LockTimeout is how long Run waits for others.
	LockTimeout time.Duration
}

// ProcessLock serialises the guards of one process and of no other: with two instances
// of a program, each has a lock of its own, and together they can exceed a limit. It is
// for what lives in the memory of one process, and for programs of which there is one.
//
// It rolls nothing back: what act did before it failed stays, unless Transact sees to it.
type ProcessLock[Tx any] struct {
	options ProcessOptions[Tx]
	domain  string
	keys    keyed
}

// NewProcessLock makes a lock with a domain of its own: two of one process do not
// exclude each other.
func NewProcessLock[Tx any](o ProcessOptions[Tx]) *ProcessLock[Tx] {
	if o.Transact == nil {
		o.Transact = func(ctx context.Context, fn func(ctx context.Context, tx Tx) error) error {
			var zero Tx
			return fn(ctx, zero)
		}
	}
	if o.LockTimeout <= 0 {
		o.LockTimeout = DefaultLockTimeout
	}
	return &ProcessLock[Tx]{options: o, domain: fmt.Sprintf("process:%d-%s", os.Getpid(), rand.Text())}
}

// Domain is "process:" and what names this lock among all.
func (l *ProcessLock[Tx]) Domain() string { return l.domain }

// Run is that of Lock.
func (l *ProcessLock[Tx]) Run(ctx context.Context, key Key, fn func(ctx context.Context, tx Tx) error) error {
	release, err := wait(ctx, &l.keys, waiting{key: key, domain: l.domain, patience: l.options.LockTimeout})
	if err != nil {
		return err
	}
	defer release()
	return l.options.Transact(ctx, fn)
}

// waiting is who waits for what, and how long.
type waiting struct {
	key      Key
	domain   string
	patience time.Duration
}

// wait is keyed.acquire with the errors of a Lock.
func wait(ctx context.Context, keys *keyed, w waiting) (release func(), err error) {
	release, err = keys.acquire(ctx, w.key.String(), w.patience)
	switch {
	case err == nil:
		return release, nil
	case errors.Is(err, errQueue):
		return nil, &LockTimeout{Key: w.key.String(), Domain: w.domain, Waited: w.patience, Cause: err}
	default:
		return nil, fmt.Errorf("wait for lock %s: %w", w.key, err)
	}
}
