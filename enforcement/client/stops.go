package client

import (
	"bytes"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/schemas"
)

// stopsKept is how many decisions may wait to be looked at; one that finds no room
// is made up for by the next progress of its execution.
const stopsKept = 8192

// runtimeMark is in every runtime decision: most decisions are of other kinds, and
// looking for it is cheaper than reading them.
var runtimeMark = []byte(`"` + string(schemas.KindRuntime) + `"`)

// stops hears the runtime denials of the executions that are worked on. It listens
// to a workspace's decisions while one of its executions has a Context. What the
// engine's own progress brings about it hears for certain, because both go over one
// connection in this order; somebody else's word in the first moment it may miss.
type stops struct {
	client *Client
	heard  chan *nats.Msg

	mu     sync.Mutex
	rooms  map[string]*audience // by workspace
	closed bool
}

// audience is those who listen to one workspace's decisions.
type audience struct {
	sub     *nats.Subscription
	watches map[*watch]struct{}
}

func newStops(c *Client) *stops {
	return &stops{client: c, heard: make(chan *nats.Msg, stopsKept), rooms: make(map[string]*audience)}
}

func (s *stops) add(w *watch) {
	workspace := w.run.decision.WorkspaceID
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	room := s.rooms[workspace]
	if room == nil {
		room = &audience{watches: make(map[*watch]struct{})}
		var err error
		if room.sub, err = s.client.nats.ChanSubscribe(s.client.topology.Decision(workspace), s.heard); err != nil {
			s.client.log.Warn("runtime denials can't be heard", "workspace", workspace, "error", err)
			return
		}
		s.rooms[workspace] = room
	}
	room.watches[w] = struct{}{}
}

func (s *stops) remove(w *watch) {
	workspace := w.run.decision.WorkspaceID
	s.mu.Lock()
	defer s.mu.Unlock()
	room := s.rooms[workspace]
	if room == nil {
		return
	}
	delete(room.watches, w)
	if len(room.watches) == 0 {
		delete(s.rooms, workspace)
		_ = room.sub.Unsubscribe() // fails with the connection, which ends it too
	}
}

func (s *stops) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for workspace, room := range s.rooms {
		delete(s.rooms, workspace)
		_ = room.sub.Unsubscribe()
	}
}

func (s *stops) listen() {
	for {
		select {
		case <-s.client.done:
			return
		case m := <-s.heard:
			if bytes.Contains(m.Data, runtimeMark) {
				s.hear(m)
			}
		}
	}
}

func (s *stops) hear(m *nats.Msg) {
	event, err := schemas.Decode[schemas.DecisionMade](m.Subject, m.Data)
	if err != nil {
		s.client.log.Warn("decision ignored", "subject", m.Subject, "error", err)
		return
	}
	d := &event.Data
	if d.Kind != schemas.KindRuntime || d.Allowed {
		return
	}
	for _, w := range s.of(d.WorkspaceID, d.ExecutionID) {
		w.run.stop(newDenied(d))
	}
}

func (s *stops) of(workspace, execution string) []*watch {
	s.mu.Lock()
	defer s.mu.Unlock()
	room := s.rooms[workspace]
	if room == nil {
		return nil
	}
	var found []*watch
	for w := range room.watches {
		if w.run.decision.ExecutionID == execution {
			found = append(found, w)
		}
	}
	return found
}
