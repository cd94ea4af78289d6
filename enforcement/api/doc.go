// Package api is the doors at which a caller waits for the answer: HTTP and the NATS
// micro-service, over what they have in common.
//
//	HTTP ───────────┐                      ┌─► Enforcer (Redis) ─► decisions stream ─┐
//	                ├─► Executions ─ batch ┤                                        ├─► answer
//	micro-service ──┤   one per process    └─► executions stream ─► Enforcer ───────┘
//	                └─► counters, reader
//
// An answer is given only after the stream has it, so that a door and an event are
// one record. Where none can be given nobody is let in: every fault is an error that
// wraps enforcement.ErrUnavailable, and asking again costs nothing.
package api
