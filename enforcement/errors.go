package enforcement

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrUnavailable means that Redis or the plan could not be reached, so
	// nothing was decided that anybody heard of. Ask again later, with the same
	// request: a decision taken unheard is repeated, not taken twice.
	ErrUnavailable = errors.New("enforcement is unavailable")
	// ErrStale means that the plan read from the database stayed older than what
	// Redis has seen, after every reload that is allowed. Ask again later.
	ErrStale = errors.New("the plan known here is older than the one already enforced")
)

// Rebuilding means that Redis lost what it knew of a workspace, or may have, and that
// it is not rebuilt from the ledger yet. It wraps ErrUnavailable: nothing was decided.
type Rebuilding struct {
	Workspace string
	// After is when to ask again.
	After time.Duration
}

// Error names the workspace and when to ask again.
func (r *Rebuilding) Error() string {
	return fmt.Sprintf("workspace %s is being rebuilt from the ledger, ask again in %s", r.Workspace, r.After)
}

// Unwrap is ErrUnavailable.
func (*Rebuilding) Unwrap() error { return ErrUnavailable }
