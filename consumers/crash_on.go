//go:build crashpoints

package consumers

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/nats-io/nats.go"
)

// crash kills the process with SIGKILL at the point that HEADROOM_CRASH_AT names:
// <kind>.<step> or <kind>.<step>:<n> for the n-th passing. The kinds are
// requested, progressed and completed. The steps, in order:
//
//	pulled      a batch was received
//	decided     the script ran, its answers are known
//	publishing  nothing is published yet
//	sent        all is sent to the stream, no acknowledgement was awaited
//	published   the stream acknowledged all
//	settling    nothing is acknowledged yet
//	settled     the acknowledgements have reached the server
//
// completed has no decisions, and so no publishing, sent and published.
type crash struct {
	nats  *nats.Conn
	point string
	left  *atomic.Int64
}

func newCrash(nc *nats.Conn) crash {
	point, times, counted := strings.Cut(os.Getenv("HEADROOM_CRASH_AT"), ":")
	c := crash{nats: nc, point: point, left: &atomic.Int64{}}
	c.left.Store(1)
	if n, err := strconv.ParseInt(times, 10, 64); counted && err == nil {
		c.left.Store(n)
	}
	return c
}

func (c crash) at(kind, step string) {
	if c.point != kind+"."+step || c.left.Add(-1) != 0 {
		return
	}
	if step == "settled" {
		_ = c.nats.Flush()
	}
	c.kill()
}

// sending runs send, which publishes that many messages and awaits their
// acknowledgements, and at the point "sent" kills before it returns.
func (c crash) sending(kind string, messages int, send func()) {
	if c.point != kind+".sent" || c.left.Add(-1) != 0 {
		send()
		return
	}
	before := c.nats.Stats().OutMsgs
	go send()
	for c.nats.Stats().OutMsgs < before+uint64(messages) {
		runtime.Gosched()
	}
	_ = c.nats.Flush()
	c.kill()
}

func (c crash) kill() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
