package subscriptions

import "errors"

// The errors a caller acts on. Each is wrapped with what was asked for; test
// with errors.Is.
var (
	// ErrNoDefaultPlan means that no catalog was applied yet, so that a workspace
	// without a subscription has no terms at all: apply one.
	ErrNoDefaultPlan = errors.New("no default plan: apply a catalog first")
	// ErrUnknownPlan means that the catalog in force has no plan of that key.
	ErrUnknownPlan = errors.New("unknown plan")
	// ErrUnknownWorkspace means that the database has never seen the workspace.
	ErrUnknownWorkspace = errors.New("unknown workspace")
	// ErrNotEntitled means that a workspace never seen is refused, because
	// StoreOptions.DenyUnknown is set: assign it a plan.
	ErrNotEntitled = errors.New("workspace is not entitled: it has no plan")
	// ErrInvalidOverride means that an OverrideChange contradicts itself or names
	// something that is not allowed; the text lists every fault.
	ErrInvalidOverride = errors.New("invalid override")
	// ErrInvalidAssignment means that an Assignment contradicts itself or names
	// a value that does not exist; nothing was written.
	ErrInvalidAssignment = errors.New("invalid assignment")
	// ErrInvalidState means that a SourceState contradicts itself or what is known
	// about whose subscription it is; nothing was written.
	ErrInvalidState = errors.New("invalid subscription state")
	// ErrPeriodNotStarted means that the caller's clock and the database's
	// disagree about which period is running: the one that holds the instant
	// has not begun. Nothing may be charged; ask again in a moment.
	ErrPeriodNotStarted = errors.New("period has not started")
	// ErrStalePlan means that every reading was older than an invalidation that
	// arrived meanwhile. Nothing may be decided on it; ask again in a moment.
	ErrStalePlan = errors.New("plan changed while it was read")
)
