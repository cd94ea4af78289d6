package stripetest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// api is the HTTP side of the fake.
type api struct {
	stripe *Stripe
	mux    *http.ServeMux

	mu     sync.Mutex
	calls  []*Call
	seen   int
	faults []*Fault
	limit  limit
}

// Call is one call of the API, in the order of arrival.
type Call struct {
	Method, Path, Query string
	// Account and Version are the headers as they were sent.
	Account, Version string
	RequestID        string
	// Status is the answer, as soon as it is known: 0 before, and set while it is held up.
	Status int
}

// Handler is the API: retrieve and list of subscriptions, invoices and events, list of
// Checkout sessions, retrieve of customers, charges and disputes. It reads
// Authorization, Stripe-Version and Stripe-Account, and sends Request-Id. Events are
// rendered at the account's own version, as at Stripe, all else at that of the call.
func (s *Stripe) Handler() http.Handler { return s.api }

func newAPI(s *Stripe) *api {
	a := &api{stripe: s, mux: http.NewServeMux()}
	routes := map[string]func(*reading) (map[string]any, *Error){
		"GET /v1/subscriptions":      listSubscriptions,
		"GET /v1/subscriptions/{id}": func(r *reading) (map[string]any, *Error) { return one(r, "subscription", s.subs.byID) },
		"GET /v1/invoices":           listInvoices,
		"GET /v1/invoices/{id}":      func(r *reading) (map[string]any, *Error) { return one(r, "invoice", s.invoices.byID) },
		"GET /v1/events":             listEvents,
		"GET /v1/events/{id}":        readEvent,
		"GET /v1/customers/{id}":     func(r *reading) (map[string]any, *Error) { return one(r, "customer", s.customers) },
		"GET /v1/checkout/sessions":  listSessions,
		"GET /v1/charges/{id}":       func(r *reading) (map[string]any, *Error) { return one(r, "charge", s.charges.byID) },
		"GET /v1/disputes/{id}":      func(r *reading) (map[string]any, *Error) { return one(r, "dispute", s.disputes.byID) },
	}
	for pattern, read := range routes {
		a.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { a.answer(w, r, read) })
	}
	a.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		a.answer(w, r, func(*reading) (map[string]any, *Error) {
			return nil, &Error{
				Status: http.StatusNotFound, Type: invalidRequest,
				Message: fmt.Sprintf("Unrecognized request URL (%s: %s).", r.Method, r.URL.Path),
			}
		})
	})
	return a
}

// ServeHTTP is for http.Handler.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

// answer reads first and strikes then: an answer that is held up is as old as its call.
func (a *api) answer(w http.ResponseWriter, r *http.Request, read func(*reading) (map[string]any, *Error)) {
	call, fault := a.arrive(r)
	w.Header().Set("Request-Id", call.RequestID)
	w.Header().Set("Content-Type", "application/json")
	status, body := a.read(r, read, fault)
	a.know(call, status)
	if !fault.pass(r.Context()) {
		return
	}
	text, err := json.Marshal(body)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"error":{"type":"api_error"}}`)
	}
	if fault.Cut {
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		_, _ = w.Write(text[:len(text)/2])
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

func (a *api) read(r *http.Request, read func(*reading) (map[string]any, *Error), f Fault) (int, map[string]any) {
	refusal := f.refusal()
	if refusal == nil {
		in, err := a.stripe.reading(r)
		if err == nil {
			a.stripe.mu.Lock()
			defer a.stripe.mu.Unlock()
			body, err := read(in)
			if err == nil {
				return http.StatusOK, body
			}
			refusal = err
		} else {
			refusal = err
		}
	}
	return refusal.Status, map[string]any{"error": map[string]any{
		"type": refusal.Type, "code": textOrNull(refusal.Code), "param": textOrNull(refusal.Param), "message": refusal.Message,
	}}
}

// reading is a call that was let in.
type reading struct {
	stripe   *Stripe
	request  *http.Request
	version  Version
	account  string
	livemode bool
}

func (s *Stripe) reading(r *http.Request) (*reading, *Error) {
	in := &reading{stripe: s, request: r, version: Version(r.Header.Get("Stripe-Version")), account: r.Header.Get("Stripe-Account")}
	key, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !bearer {
		key, _, _ = r.BasicAuth()
	}
	in.livemode = key == s.options.LiveKey
	if !in.livemode && key != s.options.TestKey {
		return nil, &Error{Status: http.StatusUnauthorized, Type: invalidRequest, Message: "Invalid API Key provided."}
	}
	in.version = orElse(in.version, s.options.Version)
	if err := in.version.Check(); err != nil {
		return nil, refused("", "Invalid Stripe API version: "+string(in.version))
	}
	if r.URL.Query().Has("expand[]") {
		return nil, refused("expand", "The fake expands nothing.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.account != "" && !s.accounts[in.account] {
		return nil, &Error{
			Status: http.StatusForbidden, Type: invalidRequest, Code: "account_invalid",
			Message: "The provided key does not have access to account '" + in.account + "' (or that account does not exist).",
		}
	}
	return in, nil
}

func (r *reading) sees(object owned) bool {
	o := object.owner()
	return o.account == r.account && o.livemode == r.livemode
}

func one[T any, P interface {
	*T
	owned
}](r *reading, kind string, from map[string]*T) (map[string]any, *Error) {
	id := r.request.PathValue("id")
	object, ok := from[id]
	if !ok || !r.sees(P(object)) {
		return nil, missing(kind, id)
	}
	return render(object, r.version), nil
}

// Calls are all calls so far.
func (s *Stripe) Calls() []Call {
	s.api.mu.Lock()
	defer s.api.mu.Unlock()
	return copies(s.api.calls, func(c *Call) *Call { return c })
}

// CallsTo counts the calls of paths that begin so.
func (s *Stripe) CallsTo(path string) int {
	n := 0
	for _, call := range s.Calls() {
		if strings.HasPrefix(call.Path, path) {
			n++
		}
	}
	return n
}

// ForgetCalls begins the counting anew.
func (s *Stripe) ForgetCalls() {
	s.api.mu.Lock()
	defer s.api.mu.Unlock()
	s.api.calls = nil
}

// arrive notes a call and finds the fault that strikes it.
func (a *api) arrive(r *http.Request) (*Call, Fault) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen++
	call := &Call{
		Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Account: r.Header.Get("Stripe-Account"),
		Version: r.Header.Get("Stripe-Version"), RequestID: fmt.Sprintf("req_%06d", a.seen),
	}
	a.calls = append(a.calls, call)
	if !a.limit.takes(time.Now()) {
		return call, Fault{Status: http.StatusTooManyRequests}
	}
	return call, a.strike(r.URL.Path)
}

func (a *api) know(call *Call, status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	call.Status = status
}

// wait is a timer that a call that is given up does not wait for.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
