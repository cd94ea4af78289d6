package proof_test

import (
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/schemas"
)

// load asks for executions without pause, a bounded number of them unanswered at a
// time, and looks on at what is decided.
type load struct {
	*house
	free chan struct{}
	stop chan struct{}
	done chan struct{}

	mu   sync.Mutex
	seen []schemas.DecisionMade
}

// ask keeps asking for the workspaces in turn until halt is called.
func (h *house) ask(unanswered int, workspaces ...string) *load {
	h.Helper()
	l := &load{house: h, free: make(chan struct{}, unanswered), stop: make(chan struct{}), done: make(chan struct{})}
	for range unanswered {
		l.free <- struct{}{}
	}
	listening, err := h.js.Conn().Subscribe(h.topology.Decision("*"), l.hear)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = listening.Unsubscribe() })
	go func() {
		defer close(l.done)
		for n := 0; ; n++ {
			select {
			case <-l.stop:
				return
			case <-l.free:
			}
			ws, id := workspaces[n%len(workspaces)], fmt.Sprintf("x%06d", n)
			body := encode(h.TB, "ask-"+id, schemas.ExecutionRequested{WorkspaceID: ws, ExecutionID: id})
			if _, err := h.js.PublishAsync(h.topology.Requested(ws), body); err != nil {
				h.Errorf("ask: %v", err)
				return
			}
		}
	}()
	return l
}

func (l *load) hear(m *nats.Msg) {
	event, err := schemas.Decode[schemas.DecisionMade](m.Subject, m.Data)
	if err != nil {
		l.Errorf("decision: %v", err)
		return
	}
	l.mu.Lock()
	l.seen = append(l.seen, event.Data)
	l.mu.Unlock()
	select {
	case l.free <- struct{}{}:
	default:
	}
}

// count is how many decisions were seen.
func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.seen)
}

// until waits until so many decisions are of that sort.
func (l *load) until(n int, what string, is func(schemas.DecisionMade) bool) {
	l.Helper()
	next, found := 0, 0
	l.eventually(fmt.Sprintf("%d times: %s", n, what), func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		for ; next < len(l.seen); next++ {
			if is(l.seen[next]) {
				found++
			}
		}
		return found >= n
	})
}

// halt stops asking, and waits until all is answered.
func (l *load) halt() {
	l.Helper()
	close(l.stop)
	<-l.done
	l.eventually("all is answered", func() bool { return len(l.free) == cap(l.free) })
}
