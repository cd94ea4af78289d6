package enforcement

import "errors"

var (
	// ErrUnavailable means that Redis or the plan could not be reached, so
	// nothing was decided that anybody heard of. Ask again later, with the same
	// request: a decision taken unheard is repeated, not taken twice.
	ErrUnavailable = errors.New("enforcement is unavailable")
	// ErrStale means that the plan read from the database stayed older than what
	// Redis has seen, after every reload that is allowed. Ask again later.
	ErrStale = errors.New("the plan known here is older than the one already enforced")
)
