package ledger

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

var (
	// ErrMoved means that another process has folded on from the position that
	// the batch continues from. Nothing was changed: read the position again.
	ErrMoved = errors.New("the ledger has moved on from this batch's position")
	// ErrNotLeader means that another process holds the ledger's leadership.
	ErrNotLeader = errors.New("another process leads the ledger")
)

// IsRefused reports whether Postgres refused what a batch contains (a value
// out of range, a byte that no text may hold, a broken constraint), so that the
// same batch will be refused again, however often it is tried.
func IsRefused(err error) bool {
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) {
		return false
	}
	return strings.HasPrefix(refusal.Code, "22") || strings.HasPrefix(refusal.Code, "23")
}
