package client

import (
	"sync"

	"github.com/nats-io/nats.go"
)

// link tells callers when a lost connection is back.
type link struct {
	nats    *nats.Conn
	changes chan nats.Status

	mu   sync.Mutex
	next chan struct{}
}

func newLink(nc *nats.Conn) *link {
	return &link{nats: nc, changes: nc.StatusChanged(nats.CONNECTED), next: make(chan struct{})}
}

// back is closed when the connection is next made. Take it before you look
// whether there is one.
func (l *link) back() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

// watch returns when the link or the connection is closed.
func (l *link) watch() {
	for range l.changes {
		l.mu.Lock()
		close(l.next)
		l.next = make(chan struct{})
		l.mu.Unlock()
	}
}

func (l *link) close() { l.nats.RemoveStatusListener(l.changes) }
