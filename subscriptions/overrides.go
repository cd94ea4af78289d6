package subscriptions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/schemas"
)

// Override is a limit or feature that a workspace has instead of its plan's, on
// whatever plan it is. It may be more than the plan's or less.
type Override struct {
	// Field is a limit's name, or "features." and a feature's name.
	Field string
	// Value of a boolean feature is unlimited where it is on and 0 where it is off.
	Value schemas.Limit
	// Kind is the feature's, empty for a limit.
	Kind FeatureKind
	// Reason is why, for whoever asks later.
	Reason string
	// ExpiresAt is when the plan's value holds again, UTC; nil is never.
	ExpiresAt *time.Time
	// SetAt is when it was set, UTC, and SetBy who or what did.
	SetAt time.Time
	SetBy string
}

// OverrideChange is what to set and to clear for a workspace, all at once.
type OverrideChange struct {
	WorkspaceID string
	// Set maps a field to its value. What the field had is replaced, with the reason
	// and the expiry.
	Set map[string]schemas.Limit
	// Switch maps a boolean feature's field to whether it is on. It is set like Set.
	Switch map[string]bool
	// Clear are the fields that are to be the plan's again.
	Clear []string
	// Reason must be given with what is set.
	Reason string
	// Until is when what is set expires, nil for never.
	Until *time.Time
	// Cause is written beside each amendment; empty is "override".
	Cause string
}

// check reports every fault that does not depend on what is known.
func (c OverrideChange) check() error {
	var faults []error
	if !schemas.ValidID(c.WorkspaceID) {
		faults = append(faults, fmt.Errorf("workspace %q: %s", c.WorkspaceID, idRule))
	}
	set := c.values()
	if len(set) == 0 && len(c.Clear) == 0 {
		faults = append(faults, errors.New("nothing to set or to clear"))
	}
	if len(set) > 0 && strings.TrimSpace(c.Reason) == "" {
		faults = append(faults, errors.New("reason: is missing; say why, for whoever asks later"))
	}
	if len(set) == 0 && c.Until != nil {
		faults = append(faults, errors.New("until: nothing is set that could expire; what is cleared is the plan's for good"))
	}
	for _, field := range slices.Sorted(maps.Keys(set)) {
		if fault := c.setFault(field, set[field]); fault != nil {
			faults = append(faults, fault)
		}
		if slices.Contains(c.Clear, field) {
			faults = append(faults, fmt.Errorf("%s: is set and cleared at once; keep one", field))
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("%w: %w", ErrInvalidOverride, errors.Join(faults...))
	}
	return nil
}

// values is all that is set, as it is kept.
func (c OverrideChange) values() map[string]schemas.Limit {
	values := make(map[string]schemas.Limit, len(c.Set)+len(c.Switch))
	maps.Copy(values, c.Set)
	for field, on := range c.Switch {
		values[field] = switched(on)
	}
	return values
}

func (c OverrideChange) setFault(field string, value schemas.Limit) error {
	most := int64(maxExact)
	_, counted := c.Set[field]
	_, turned := c.Switch[field]
	switch feature, ok := featureOf(field); {
	case counted && turned:
		return fmt.Errorf("%s: is set and switched at once; keep one", field)
	case turned && !ok:
		return fmt.Errorf("%s: is no feature; only a feature can be on or off", field)
	case ok && feature == schemas.FeatureStorage:
		return fmt.Errorf("%s: is reserved; override %s instead", field, schemas.LimitStorageMB)
	case ok && !schemas.ValidID(feature):
		return fmt.Errorf("%s: the feature's name %s", field, idRule)
	case !ok && !slices.Contains(schemas.LimitNames, field):
		return fmt.Errorf("%s: is no limit; the limits are %s, and a feature is features.NAME", field, strings.Join(schemas.LimitNames, ", "))
	case !ok:
		most = maxOf(field)
	}
	if n, bounded := value.Value(); bounded && n > most {
		return fmt.Errorf("%s: is %d, more than the largest allowed, %d", field, n, most)
	}
	return nil
}

// Overrides lists a workspace's overrides by field, those that have expired and
// wait to be removed left out.
func (s *Store) Overrides(ctx context.Context, workspace string) ([]Override, error) {
	all, err := overridesOf(ctx, s.pool, workspace)
	if err != nil {
		return nil, err
	}
	now, err := databaseNow(ctx, s.pool)
	if err != nil {
		return nil, fmt.Errorf("read the database's clock: %w", err)
	}
	return liveOverrides(all, now), nil
}

// overrideRow is a row of plan_overrides, from its columns or from JSON.
type overrideRow struct {
	Field     string     `json:"field" db:"field"`
	Value     *int64     `json:"value" db:"value"`
	Kind      *string    `json:"kind" db:"kind"`
	Reason    string     `json:"reason" db:"reason"`
	ExpiresAt *time.Time `json:"expires_at" db:"expires_at"`
	SetAt     time.Time  `json:"set_at" db:"set_at"`
	SetBy     string     `json:"set_by" db:"set_by"`
}

func overridesFrom(rows []overrideRow) []Override {
	if len(rows) == 0 {
		return nil
	}
	list := make([]Override, len(rows))
	for i, r := range rows {
		list[i] = Override{
			Field: r.Field, Value: schemas.LimitFrom(r.Value), Reason: r.Reason,
			ExpiresAt: storedOrNil(r.ExpiresAt), SetAt: r.SetAt.UTC(), SetBy: r.SetBy,
		}
		if _, feature := featureOf(r.Field); feature {
			list[i].Kind = FeatureStock
		}
		if r.Kind != nil {
			list[i].Kind = FeatureKind(*r.Kind)
		}
	}
	return list
}

// overridesOf is all of a workspace's overrides, by field, expired or not.
func overridesOf(ctx context.Context, q queryer, workspace string) ([]Override, error) {
	rows, err := q.Query(ctx, `SELECT field, value, kind, reason, expires_at, set_at, set_by FROM plan_overrides
		WHERE workspace_id = @workspace ORDER BY field COLLATE "C"`, pgx.NamedArgs{"workspace": workspace})
	if err != nil {
		return nil, fmt.Errorf("read overrides: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[overrideRow])
	if err != nil {
		return nil, fmt.Errorf("read overrides: %w", err)
	}
	return overridesFrom(found), nil
}

// liveOverrides are those that hold at the instant.
func liveOverrides(all []Override, at time.Time) []Override {
	live := make([]Override, 0, len(all))
	for _, o := range all {
		if o.ExpiresAt == nil || at.Before(*o.ExpiresAt) {
			live = append(live, o)
		}
	}
	return live
}

// with is the moment with terms that have the overrides that hold then.
func (m Moment) with(all []Override) Moment {
	m.Terms = m.Terms.with(liveOverrides(all, m.Now))
	return m
}
