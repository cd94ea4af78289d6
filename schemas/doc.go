// Package schemas is Headroom's contract with the outside, as code: what an
// event looks like, where it travels, and which tables it ends in. It decides
// nothing, and it imports nothing of Headroom's.
//
//	 publisher                                                         reader
//	NewEvent ─► Encode ─► Publisher ─► subject ─► stream ─► durable ─► Decode
//	  same checks ─┘       Nats-Msg-Id    └── Topology ──────┘          └─► *DecodeError:
//	                                                                        a dead letter
//
//	documents/   the same events as JSON Schema, and all of it as AsyncAPI
//	migrations/  the tables, applied by Migrate
//
// Decode and the JSON Schemas accept the same bodies, and what Encode returns
// Decode accepts. Sizes are in bytes, times in UTC, and "no limit" is never a
// number (see Limit).
package schemas
