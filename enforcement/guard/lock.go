package guard

import "context"

// Lock gives exclusive ownership of keys. The guardtest package proves one.
type Lock[Tx any] interface {
	// Run calls fn while it alone owns the key in its domain, and returns what fn returned,
	// unchanged. It releases the key however fn ends: with an error, a panic, or
	// runtime.Goexit. The context of fn is made of ctx: it has its values, and ends with it.
	//
	// A lock with transactions calls fn inside of one, hands it that as tx, and commits
	// after fn returned nil and never else. It may call fn again after a transaction
	// that left no trace.
	//
	// Without the key fn is not called, and the error is a *LockTimeout when others held
	// it, a *LockUnavailable when it could not be asked for, and wraps the error of ctx when
	// that ended meanwhile. An *OutcomeUnknown is a commit whose answer was lost.
	Run(ctx context.Context, key Key, fn func(ctx context.Context, tx Tx) error) error
	// Domain is where Run excludes others: "process:" or "database:" and a name.
	// Two guards of one key exclude each other only in the same domain.
	Domain() string
}
