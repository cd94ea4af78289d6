package subscriptions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// ChangeOverrides sets and clears overrides of a workspace and returns those that
// hold afterwards, by field. They apply at once: the open periods are amended,
// what was used stands, and the workspace's revision rises by one. Periods opened
// later have them too, on whatever plan. A workspace that is new is created, and
// stays on the default plan.
//
// The error wraps ErrInvalidOverride, which lists all faults, ErrUnknownWorkspace
// when there is nothing that could be cleared, ErrNotEntitled where an unknown
// workspace has no plan, or a fault of the database; nothing is written then.
func (s *Store) ChangeOverrides(ctx context.Context, c OverrideChange) ([]Override, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Cause == "" {
		c.Cause = "override"
	}
	var live []Override
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var err error
		live, err = s.changeOverrides(ctx, tx, c)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("override terms of workspace %s: %w", c.WorkspaceID, err)
	}
	return live, nil
}

func (s *Store) changeOverrides(ctx context.Context, tx pgx.Tx, c OverrideChange) ([]Override, error) {
	workspace, err := s.lockToOverride(ctx, tx, c)
	if err != nil {
		return nil, err
	}
	before, err := overridesOf(ctx, tx, workspace.id)
	if err != nil {
		return nil, err
	}
	features, err := catalogFeatures(ctx, tx)
	if err != nil {
		return nil, err
	}
	if err := c.checkAgainst(known{workspace: workspace, overrides: liveOverrides(before, workspace.now), features: features}); err != nil {
		return nil, err
	}
	if err := writeOverrides(ctx, tx, c, features); err != nil {
		return nil, err
	}
	cause := c.Cause
	if c.Reason != "" {
		cause += ": " + c.Reason
	}
	if err := s.override(ctx, tx, retaking{workspace: workspace, cause: cause, why: "overrides changed"}); err != nil {
		return nil, err
	}
	after, err := overridesOf(ctx, tx, workspace.id)
	return liveOverrides(after, workspace.now), err
}

// lockToOverride creates the workspace only if there is something to set, and if
// being known does not entitle it to anything.
func (s *Store) lockToOverride(ctx context.Context, tx pgx.Tx, c OverrideChange) (lockedWorkspace, error) {
	missing := ErrUnknownWorkspace
	switch {
	case len(c.values()) == 0:
	case s.options.DenyUnknown:
		missing = ErrNotEntitled
	default:
		if err := createWorkspace(ctx, tx, c.WorkspaceID); err != nil {
			return lockedWorkspace{}, err
		}
	}
	workspace, err := lockWorkspace(ctx, tx, c.WorkspaceID)
	if errors.Is(err, pgx.ErrNoRows) {
		return lockedWorkspace{}, missing
	}
	return workspace, err
}

// known is what a change is checked against.
type known struct {
	workspace lockedWorkspace
	overrides []Override
	features  map[string]FeatureKind
}

// checkAgainst reports every fault that depends on what is known: an expiry that
// has passed, a feature that no plan has or of another kind, a field that is not
// overridden.
func (c OverrideChange) checkAgainst(k known) error {
	var faults []error
	if c.Until != nil && !c.Until.After(k.workspace.now) {
		faults = append(faults, fmt.Errorf("until %s: must be later than now, %s", instantText(c.Until), instantText(&k.workspace.now)))
	}
	for _, field := range slices.Sorted(maps.Keys(c.values())) {
		if fault := c.measureFault(field, k.features); fault != nil {
			faults = append(faults, fault)
		}
	}
	fields := make([]string, len(k.overrides))
	for i, o := range k.overrides {
		fields[i] = o.Field
	}
	for _, field := range c.Clear {
		if !slices.Contains(fields, field) {
			faults = append(faults, fmt.Errorf("%s: is not overridden; overridden are %s", field, orNone(fields)))
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("%w: %w", ErrInvalidOverride, errors.Join(faults...))
	}
	return nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// measureFault is why the field cannot be set as it is asked for, nil if it can.
func (c OverrideChange) measureFault(field string, catalog map[string]FeatureKind) error {
	feature, ok := featureOf(field)
	if !ok {
		return nil
	}
	kind, known := catalog[feature]
	_, turned := c.Switch[field]
	switch {
	case !known:
		return fmt.Errorf("%s: no plan of the catalog has the feature; there are %s", field, orNone(slices.Sorted(maps.Keys(catalog))))
	case turned && kind != FeatureBoolean:
		return fmt.Errorf("%s: is counted, a %s; write a number or unlimited", field, kind)
	case !turned && kind == FeatureBoolean:
		return fmt.Errorf("%s: is on or off and not counted; write true or false", field)
	default:
		return nil
	}
}

func writeOverrides(ctx context.Context, tx pgx.Tx, c OverrideChange, features map[string]FeatureKind) error {
	batch := &pgx.Batch{}
	values := c.values()
	for _, field := range slices.Sorted(maps.Keys(values)) {
		kind := FeatureStock
		if feature, ok := featureOf(field); ok {
			kind = features[feature]
		}
		batch.Queue(`INSERT INTO plan_overrides (workspace_id, field, value, kind, reason, expires_at, set_at, set_by)
			VALUES (@workspace, @field, @value, nullif(@kind, 'stock'), @reason, @until, clock_timestamp(), @cause)
			ON CONFLICT (workspace_id, field) DO UPDATE SET value = excluded.value, kind = excluded.kind, reason = excluded.reason,
				expires_at = excluded.expires_at, set_at = excluded.set_at, set_by = excluded.set_by`, pgx.NamedArgs{
			"workspace": c.WorkspaceID, "field": field, "value": values[field].Pointer(),
			"kind": string(kind), "reason": strings.TrimSpace(c.Reason), "until": storedOrNil(c.Until), "cause": c.Cause,
		})
	}
	batch.Queue(`DELETE FROM plan_overrides WHERE workspace_id = @workspace AND field = ANY(@fields)`,
		pgx.NamedArgs{"workspace": c.WorkspaceID, "fields": c.Clear})
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("write overrides: %w", err)
	}
	return nil
}
