package guard

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/headroomhq/headroom/subscriptions"
)

// outage reports whether an error proves that the provider could not be asked or could
// not answer in time. What it did answer, such as a refusal of the password, does not.
func outage(err error) bool {
	var refused *pgconn.PgError
	if errors.As(err, &refused) && len(refused.Code) > 2 {
		// Connections, resources, an operator's intervention, and the system's errors.
		return slices.Contains([]string{"08", "53", "57", "58"}, refused.Code[:2])
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errTooSlow) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, subscriptions.ErrStalePlan)
}
