// Package client is what an engine beside Headroom imports: it keeps a process's
// knowledge of plans current.
//
//	headroom.plans.invalidated.<ws> ─► Invalidations ─► the process's plan cache
package client
