package stripetest

import (
	"encoding/json"
	"time"
)

// Event is one event: what happened, and the object as it was at that moment.
type Event struct {
	ID, Type string
	// Created is in whole seconds, so that many events share it.
	Created time.Time
	// Account is the connected account, empty for the account itself.
	Account  string
	Livemode bool
	// Object and ObjectID tell what it is about, Subscription the subscription that
	// this belongs to, if any.
	Object, ObjectID, Subscription string
	// Request is the call that caused it, empty for what fell due.
	Request string

	object, before any
}

// happening is an event to be made: object and before are snapshots that nobody changes.
type happening struct {
	typ    string
	object any
	before any
}

// owner is where an object belongs.
type owner struct {
	object, id, sub string
	account, clock  string
	livemode        bool
}

type owned interface{ owner() owner }

func (s *Stripe) emit(h happening) {
	if s.muted {
		return
	}
	o := owner{object: "price"}
	if of, ok := h.object.(owned); ok {
		o = of.owner()
	}
	e := &Event{
		ID: s.ids.make("evt"), Type: h.typ, Created: s.clocks[o.clock].now, Account: o.account, Livemode: o.livemode,
		Object: o.object, ObjectID: o.id, Subscription: o.sub, Request: s.request, object: h.object, before: h.before,
	}
	s.events.add(e.ID, "", e)
}

// Body is the event as Stripe sends it to an endpoint of that version. The bytes of one
// event at one version are always the same.
func (e Event) Body(v Version) []byte {
	body, err := json.Marshal(e.render(v))
	if err != nil {
		// The parts are maps of plain values, but for what Emit was given.
		return []byte("{}")
	}
	return body
}

func (e Event) render(v Version) map[string]any {
	data := map[string]any{"object": render(e.object, v)}
	if e.before != nil {
		data["previous_attributes"] = previous(render(e.before, v), render(e.object, v))
	}
	out := map[string]any{
		"id": e.ID, "object": "event", "api_version": string(v), "created": e.Created.Unix(), "data": data,
		"livemode": e.Livemode, "pending_webhooks": 1, "type": e.Type,
		"request": map[string]any{"id": textOrNull(e.Request), "idempotency_key": nil},
	}
	if e.Account != "" {
		out["account"] = e.Account
	}
	return out
}

// Events are all events in the order of their making.
func (s *Stripe) Events() []Event { return s.EventsFrom(0) }

// EventsFrom are the events after the first n, so that EventsFrom(len(seen)) are the new
// ones.
func (s *Stripe) EventsFrom(n int) []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n >= len(s.events.order) {
		return nil
	}
	return copies(s.events.order[n:], func(e *Event) *Event { return e })
}

// Foreign describes an event about something that this package does not model.
type Foreign struct {
	Type string
	// Object is sent as it is at every version.
	Object   map[string]any
	Account  string
	Livemode bool
}

func (f Foreign) owner() owner {
	kind, _ := f.Object["object"].(string)
	id, _ := f.Object["id"].(string)
	return owner{object: kind, id: id, account: f.Account, livemode: f.Livemode}
}

// Emit makes an event of any type about any object, such as one of a type that the
// endpoint does not know.
func (s *Stripe) Emit(f Foreign) Event {
	s.enter()
	defer s.leave()
	s.emit(happening{typ: f.Type, object: f})
	if s.muted {
		return Event{}
	}
	return *s.events.order[len(s.events.order)-1]
}
