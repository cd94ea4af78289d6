package webhooks

// probe is told of each step that a process takes after an event was stored. Only
// tests have one that does anything: it kills the process there. The steps of a
// look-up, in order:
//
//	claimed   the look-up is this process's
//	found     Stripe has answered, or the payloads are folded
//	written   the rows and the news are written, and not committed
//	settled   all is committed
//
// Those of an object that is no subscription are taken, traced, when it is known which
// subscriptions it is about, and attached, when they are asked for.
type probe interface{ at(step string) }

// unwatched is the probe of every process but a test's.
type unwatched struct{}

func (unwatched) at(string) {}
