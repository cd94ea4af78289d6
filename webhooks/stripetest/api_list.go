package stripetest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// kept is how long events can be read.
const kept = 30 * day

// query is a list call: where it looks, and what it keeps.
type query[T any] struct {
	of []*T
	// index is the place of an id in of, below zero if it is not there.
	index func(id string) int
	keep  func(*T) bool
}

// page is the part of a list, newest first, that a call asks for. With ending_before it
// is the nearest newer ones, also newest first.
func page[T any](r *reading, q query[T]) (map[string]any, *Error) {
	limit, err := r.limit()
	if err != nil {
		return nil, err
	}
	from, step := len(q.of)-1, -1
	values := r.request.URL.Query()
	for _, cursor := range []string{"starting_after", "ending_before"} {
		id := values.Get(cursor)
		if id == "" {
			continue
		}
		at := q.index(id)
		if at < 0 {
			return nil, &Error{
				Status: http.StatusBadRequest, Type: invalidRequest, Code: "resource_missing", Param: cursor,
				Message: "No such object: '" + id + "'",
			}
		}
		if cursor == "ending_before" {
			step = 1
		}
		from = at + step
	}
	var found []any
	for at := from; at >= 0 && at < len(q.of) && len(found) <= limit; at += step {
		if q.keep(q.of[at]) {
			found = append(found, render(rendered(q.of[at]), r.version))
		}
	}
	out := list(r.request.URL.Path, nil)
	out["has_more"] = len(found) > limit
	found = found[:min(limit, len(found))]
	if step > 0 {
		slices.Reverse(found)
	}
	if len(found) > 0 {
		out["data"] = found
	}
	return out, nil
}

func rendered(object any) any {
	if e, ok := object.(*Event); ok {
		return *e
	}
	return object
}

func (r *reading) limit() (int, *Error) {
	text := r.request.URL.Query().Get("limit")
	if text == "" {
		return 10, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 100 {
		return 0, refused("limit", "Invalid integer: must be between 1 and 100")
	}
	return n, nil
}

// within is the filter of created, created[gte] and its like.
func (r *reading) within() (func(time.Time) bool, *Error) {
	tests := map[string]func(a, b int64) bool{
		"created":      func(a, b int64) bool { return a == b },
		"created[gt]":  func(a, b int64) bool { return a > b },
		"created[gte]": func(a, b int64) bool { return a >= b },
		"created[lt]":  func(a, b int64) bool { return a < b },
		"created[lte]": func(a, b int64) bool { return a <= b },
	}
	values := r.request.URL.Query()
	bounds := map[string]int64{}
	for name := range tests {
		if !values.Has(name) {
			continue
		}
		n, err := strconv.ParseInt(values.Get(name), 10, 64)
		if err != nil {
			return nil, refused(name, "Invalid timestamp")
		}
		bounds[name] = n
	}
	return func(t time.Time) bool {
		for name, bound := range bounds {
			if !tests[name](t.Unix(), bound) {
				return false
			}
		}
		return true
	}, nil
}

func listSubscriptions(r *reading) (map[string]any, *Error) {
	created, err := r.within()
	if err != nil {
		return nil, err
	}
	values := r.request.URL.Query()
	status, customer, clock := values.Get("status"), values.Get("customer"), values.Get("test_clock")
	return page(r, query[Subscription]{
		of: r.stripe.subs.order, index: r.stripe.subs.place,
		keep: func(u *Subscription) bool {
			// Those on a test clock are listed only when asked for.
			hidden := u.TestClock != clock && customer == "" || clock != "" && u.TestClock != clock
			return r.sees(u) && !hidden && (customer == "" || u.Customer == customer) && created(u.Created) &&
				hasStatus(u, status)
		},
	})
}

// hasStatus is the filter of status: without one, canceled subscriptions are left out.
func hasStatus(u *Subscription, status string) bool {
	switch status {
	case "all":
		return true
	case "":
		return u.Status != Canceled
	case "ended":
		return u.ended()
	default:
		return string(u.Status) == status
	}
}

func listInvoices(r *reading) (map[string]any, *Error) {
	created, err := r.within()
	if err != nil {
		return nil, err
	}
	values := r.request.URL.Query()
	sub, customer, status := values.Get("subscription"), values.Get("customer"), values.Get("status")
	q := query[Invoice]{of: r.stripe.invoices.order, index: r.stripe.invoices.place}
	if sub != "" {
		q.of = r.stripe.invoices.bySub[sub]
		q.index = func(id string) int { return slices.IndexFunc(q.of, func(i *Invoice) bool { return i.ID == id }) }
	}
	q.keep = func(i *Invoice) bool {
		return r.sees(i) && (customer == "" || i.Customer == customer) && (status == "" || string(i.Status) == status) &&
			created(i.Created)
	}
	return page(r, q)
}

func listSessions(r *reading) (map[string]any, *Error) {
	values := r.request.URL.Query()
	sub, customer := values.Get("subscription"), values.Get("customer")
	q := query[Session]{of: r.stripe.sessions.order, index: r.stripe.sessions.place}
	if sub != "" {
		q.of = r.stripe.sessions.bySub[sub]
		q.index = func(id string) int { return slices.IndexFunc(q.of, func(c *Session) bool { return c.ID == id }) }
	}
	q.keep = func(c *Session) bool { return r.sees(c) && (customer == "" || c.Customer == customer) }
	return page(r, q)
}

func listEvents(r *reading) (map[string]any, *Error) {
	created, err := r.within()
	if err != nil {
		return nil, err
	}
	values := r.request.URL.Query()
	types := append(values["types[]"], values["type"]...)
	for at := 0; values.Has("types[" + strconv.Itoa(at) + "]"); at++ {
		types = append(types, values.Get("types["+strconv.Itoa(at)+"]"))
	}
	r.version = r.stripe.options.Version
	return page(r, query[Event]{
		of: r.stripe.events.order,
		index: func(id string) int {
			if e := r.stripe.events.byID[id]; e == nil || r.stripe.forgotten(e) {
				return -1
			}
			return r.stripe.events.place(id)
		},
		keep: func(e *Event) bool {
			return e.Account == r.account && e.Livemode == r.livemode && !r.stripe.forgotten(e) && created(e.Created) &&
				(len(types) == 0 || slices.ContainsFunc(types, e.is))
		},
	})
}

func readEvent(r *reading) (map[string]any, *Error) {
	id := r.request.PathValue("id")
	e := r.stripe.events.byID[id]
	if e == nil || e.Account != r.account || e.Livemode != r.livemode || r.stripe.forgotten(e) {
		return nil, missing("event", id)
	}
	return e.render(r.stripe.options.Version), nil
}

func (s *Stripe) forgotten(e *Event) bool { return s.clocks[""].now.Sub(e.Created) > kept }

// is reports whether the event is of a type, or of a group such as invoice.*.
func (e *Event) is(typ string) bool {
	group, all := strings.CutSuffix(typ, "*")
	return e.Type == typ || all && strings.HasPrefix(e.Type, group)
}

// place is the index of an id, below zero if it is not there.
func (t *table[T]) place(id string) int {
	if at, ok := t.at[id]; ok {
		return at
	}
	return -1
}
