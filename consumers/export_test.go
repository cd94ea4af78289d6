package consumers

import (
	"os"
	"runtime"
	"sync/atomic"
	"syscall"

	"github.com/nats-io/nats.go"
)

// KillAt makes these consumers end their process with SIGKILL when they pass
// a step of a kind for the n-th time. See probe for the steps.
func (c *Consumers) KillAt(kind, step string, n int64) {
	k := &killer{nats: c.options.NATS, kind: kind, step: step}
	k.left.Store(n)
	c.probe = k
}

// KillAt makes this relay end its process with SIGKILL when it passes a step for the
// n-th time. See probe for the steps.
func (r *Relay) KillAt(step string, n int64) {
	k := &killer{nats: r.options.NATS, kind: kindRelay, step: step}
	k.left.Store(n)
	r.probe = k
}

// KillAt makes this watchdog end its process with SIGKILL when it passes a step for the
// n-th time. See probe for the steps.
func (w *Watchdog) KillAt(step string, n int64) {
	k := &killer{nats: w.options.NATS, kind: kindWatchdog, step: step}
	k.left.Store(n)
	w.probe = k
}

type killer struct {
	nats       *nats.Conn
	kind, step string
	left       atomic.Int64
}

func (k *killer) at(kind, step string) {
	if !k.isDue(kind, step) {
		return
	}
	if step == "settled" {
		_ = k.nats.Flush() // the server has the acknowledgements
	}
	k.kill()
}

func (k *killer) sending(kind string, messages int, send func()) {
	if !k.isDue(kind, "sent") {
		send()
		return
	}
	before := k.nats.Stats().OutMsgs
	go send()
	for k.nats.Stats().OutMsgs < before+uint64(messages) {
		runtime.Gosched()
	}
	_ = k.nats.Flush()
	k.kill()
}

func (k *killer) isDue(kind, step string) bool {
	return kind == k.kind && step == k.step && k.left.Add(-1) == 0
}

func (k *killer) kill() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
