// Package replay plays what really happened once against a running Headroom,
// and shows what Headroom decides about it.
//
//	trace.csv ── ReadTrace ──▶ Trace ── Play ──▶ Headroom (Door: JetStream in, decisions out)
//	                                     │
//	                                     └─ Decided ──▶ View ──▶ a line each, then the summary
//
// Each row of a trace is one execution. It is requested at executed_at with
// its input_bytes. If it is allowed, it runs for makespan_seconds, reports its
// tasks and output_bytes, and completes; if that report brings a runtime
// denial, it completes as canceled instead. The order of events is that of the
// trace's clock, and at one instant ends come before starts. Only the pauses
// are scaled: what Headroom is told of times and durations is the trace's own.
package replay
