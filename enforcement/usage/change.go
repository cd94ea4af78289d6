package usage

import (
	"time"

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
	// empty leaves them nobody's.
	ResourceID string
	// CreatedAt is when the resource was made, by which the oldest stay unlocked: the
	// database's now unless set. It counts when the resource is first seen.
	CreatedAt time.Time
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
