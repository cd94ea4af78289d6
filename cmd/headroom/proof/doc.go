// Package proof holds tests of several instances at once, each assembled as `headroom serve`
// assembles itself, over one NATS, one Redis and one Postgres:
//
//	requests ─► instance × N ─► decisions ─► the checks
//	            own plan cache, own invalidations
//	changes ──► Store ─► outbox ─► Relay ─► every instance
//
// What they claim is checked against the decisions stream, the ledger and Redis, not
// against anything that an instance says of itself.
package proof
