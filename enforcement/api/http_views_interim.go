package api

import "time"

type WorkspaceView struct {
	WorkspaceID string `json:"workspace_id"`
	Revision    int64  `json:"revision"`
}
type ExecutionView struct {
	ExecutionID    string    `json:"execution_id"`
	LeaseExpiresAt time.Time `json:"lease_expires_at"`
}
type SubscriptionView struct {
	ID string `json:"id"`
}
type Probe struct {
	Feature  string `json:"feature" pattern:"^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$"`
	Quantity *int64 `json:"quantity,omitempty"`
}
type ProbeAnswer struct {
	Allowed bool `json:"allowed"`
}
