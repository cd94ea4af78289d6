package usage

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/headroomhq/headroom/schemas"
)

// Change asks for units of a feature, or gives them back.
type Change struct {
	WorkspaceID string
	// Feature is the catalog's name, or schemas.FeatureStorage, whose unit is a byte.
	Feature string
	// Quantity is how many units; 0 asks whether there is room and changes nothing.
	Quantity int64
	// ResourceID registers whose units these are, so that a downgrade can lock it;
	// empty leaves them nobody's. A flow has no resources.
	ResourceID string
	// CreatedAt is when the resource was made, by which the oldest stay unlocked: the
	// database's now unless set. It counts when the resource is first seen.
	CreatedAt time.Time
}

const idRule = "must be " + schemas.IDRule

// check refuses what no database needs to be asked about. All that it lets through can
// be stored: a statement that fails would spoil the caller's transaction.
func (c Change) check() error {
	switch year := c.CreatedAt.UTC().Year(); { // as it is stored and told
	case c.Quantity < 0:
		return &InvalidArgument{"quantity", "must not be negative; what is given back is released"}
	case c.ResourceID != "" && !schemas.ValidID(c.ResourceID):
		return &InvalidArgument{"resource_id", idRule}
	case !c.CreatedAt.IsZero() && (year < 1 || year > 9999):
		return &InvalidArgument{"created_at", "must be of the years 1 to 9999"}
	}
	return checkNames(c.WorkspaceID, c.Feature)
}

func checkNames(workspace, feature string) error {
	switch {
	case !schemas.ValidID(workspace):
		return &InvalidArgument{"workspace", idRule}
	case !schemas.ValidID(feature):
		return &InvalidArgument{"feature", idRule}
	}
	return nil
}

// createdAt is NULL for the database's clock.
func (c Change) createdAt() *time.Time {
	if c.CreatedAt.IsZero() {
		return nil
	}
	at := c.CreatedAt.UTC()
	return &at
}

// Once names a request, so that it has one effect however often it is sent. An empty
// Key names nothing: each call counts.
type Once struct {
	// Scope is whose keys these are, such as the name of the caller's token.
	Scope string
	Key   string
}

const maxKeyLength = 255

func (o Once) check() error {
	for field, s := range map[string]string{"Idempotency-Key": o.Key, "scope": o.Scope} {
		if len(s) > maxKeyLength || !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
			return &InvalidArgument{field, "must be at most 255 bytes of UTF-8 without a NUL"}
		}
	}
	return nil
}

// Balance is a feature's counter after a change.
type Balance struct {
	Used  int64
	Limit schemas.Limit
	// ResetsAt is when a flow begins anew; nil for a stock.
	ResetsAt *time.Time
}

// Remaining is how much is left: nil without a bound, 0 when more is used than allowed.
func (b Balance) Remaining() *int64 {
	n, bounded := b.Limit.Value()
	if !bounded {
		return nil
	}
	left := max(n-b.Used, 0)
	return &left
}
