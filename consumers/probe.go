package consumers

// probe is told of each step that a process takes. Only tests have one that does
// anything: it kills the process there. The kinds are those of messages, "ledger", "relay" and
// "watchdog"; the steps of a message, in order:
//
//	pulled      a batch was received
//	decided     the script ran, its answers are known
//	publishing  nothing is published yet
//	sent        all is sent to the stream, no acknowledgement was awaited
//	published   the stream acknowledged all
//	told        Postgres has the invalidations for renewals that others published
//	opened      Redis has the periods that were renewed
//	withdrawn   Redis has the 9008 denials that were published
//	settling    nothing is acknowledged yet
//	buried      the dead letters are stored, their messages not ended yet
//	settled     the acknowledgements are sent
//
// The ledger's are folding and folded, before and after Postgres has a batch. The relay's are
// publishing, sent and published of a wave, and marked, when Postgres has the end of a pass. The watchdog's
// are publishing, sent and published of a batch, and noted, when Postgres has what was told.
type probe interface {
	at(kind, step string)
	// sending runs send, which publishes that many messages and awaits their
	// acknowledgements.
	sending(kind string, messages int, send func())
}

// unwatched is the probe of every process but a test's.
type unwatched struct{}

func (unwatched) at(_, _ string) {}

func (unwatched) sending(_ string, _ int, send func()) { send() }
