// Package api holds the synchronous doors: the same decisions, counters and views as
// everywhere else, for callers who want an answer at once.
//
//	request ─► token, scope ─► path, query, key ─► body, held against the document ─┐
//	                                                                                ▼
//	  201, 200, 202 ◄─ a decision, a balance, a view ◄── Executions, Counters, Reader, Invalidator
//	  problem+json  ◄─ ProblemOf(err), ProblemOfDecision(d)
//
// The routes are a table (routes), from which the mux and the OpenAPI document are
// both made; a body is checked against the schema in that document, so that the two
// cannot differ. The schemas and the document are huma's. Its own binding of requests
// is not used: it takes another case of a name for the name, lets the second of two
// equal names win, reads numbers as floating point, and makes errors by a
// process-wide function.
package api
