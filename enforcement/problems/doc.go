// Package problems tells errors and denials to clients, as problem details (RFC 9457).
//
//	a decision that denies ─── OfDecision ─┐
//	an error of usage, guard,              ├─► Problem ─► Write, over HTTP
//	enforcement, subscriptions ─── Of ─────┘      └─────► Body, over anything else
//
// It is what Headroom's own doors answer with, for an application that counts with usage
// or guards its inserts and answers its customers itself. Each kind of problem has its
// section in docs/problems.md, which Type points at.
package problems
