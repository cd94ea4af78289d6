package client

import (
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/schemas"
)

// inbox is one subscription for the answers to all questions: the last token of a
// reply's subject is the id of the event that asked.
type inbox struct {
	client  *Client
	address string
	sub     *nats.Subscription

	mu    sync.Mutex
	asked map[string]*asking // by event id
}

func openInbox(c *Client, address string) (*inbox, error) {
	b := &inbox{client: c, address: address + ".", asked: make(map[string]*asking)}
	var err error
	if b.sub, err = c.nats.Subscribe(b.address+"*", b.hear); err != nil {
		return nil, fmt.Errorf("subscribe to %s*: %w", b.address, err)
	}
	return b, nil
}

// close fails where the connection is closed already, and nothing is left to do then.
func (b *inbox) close() { _ = b.sub.Unsubscribe() }

// expect returns where the answer to the event is to be sent.
func (b *inbox) expect(event string, a *asking) (replyTo string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked[event] = a
	return b.address + event
}

func (b *inbox) forget(events ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, event := range events {
		delete(b.asked, event)
	}
}

// hear passes a reply on to who asked. A second reply to the same event has nobody
// who waits for it.
func (b *inbox) hear(m *nats.Msg) {
	event := m.Subject[min(len(b.address), len(m.Subject)):]
	b.mu.Lock()
	a := b.asked[event]
	b.mu.Unlock()
	if a == nil {
		return
	}
	decision, err := b.client.read(a.execution, event, m.Data)
	if err != nil {
		b.client.log.Warn("reply ignored", "workspace", a.execution.WorkspaceID, "execution", a.execution.ID,
			"request", event, "error", err)
		return
	}
	select {
	case a.answers <- decision:
		b.forget(event)
	default: // it has more answers already than it needs
	}
}

// read accepts a reply only if it is the decision on this very event: an inbox is
// open to whoever may publish there.
func (c *Client) read(e Execution, event string, body []byte) (*schemas.DecisionMade, error) {
	// The subject stands for the workspace that the decision has to be about.
	reply, err := schemas.Decode[schemas.DecisionMade](c.topology.Decision(e.WorkspaceID), body)
	if err != nil {
		return nil, err
	}
	d := &reply.Data
	switch {
	case d.Kind != schemas.KindAdmission:
		return nil, fmt.Errorf("it is no admission but %s", d.Kind)
	case d.ExecutionID != e.ID:
		return nil, fmt.Errorf("it is about execution %s", d.ExecutionID)
	case d.RequestEventID != event || d.RequestEventSource != c.source:
		return nil, fmt.Errorf("it answers event %s of %s", d.RequestEventID, d.RequestEventSource)
	}
	return d, nil
}
