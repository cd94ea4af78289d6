package usage

import "time"

type Once struct{ Scope, Key string }
type ResourceQuery struct {
	WorkspaceID, Feature, After string
	Limit                       int
}
type Resource struct {
	ResourceID string
	Quantity   int64
	CreatedAt  time.Time
	Locked     bool
}
type ResourcePage struct {
	Resources []Resource
	Next      string
}
