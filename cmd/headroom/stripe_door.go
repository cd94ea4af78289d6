package main

import (
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
)

// stripeDoor serves POST /webhooks/stripe from the moment that the events can be stored
// until the process is asked to end. Before and after that Stripe is asked to send again.
type stripeDoor struct {
	configured bool
	counts     map[int]*atomic.Int64
	other      atomic.Int64

	mu      sync.Mutex
	handler http.Handler
	inside  sync.WaitGroup
}

func newStripeDoor(config Config) *stripeDoor {
	d := &stripeDoor{configured: len(config.signingSecrets()) > 0, counts: make(map[int]*atomic.Int64)}
	for _, status := range []int{
		http.StatusOK, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusServiceUnavailable,
	} {
		d.counts[status] = new(atomic.Int64)
	}
	return d
}

// open has the handler serve.
func (d *stripeDoor) open(handler http.Handler) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.handler = handler
}

// close lets nobody in any more, and waits for those who are inside.
func (d *stripeDoor) close() {
	d.mu.Lock()
	d.handler = nil
	d.mu.Unlock()
	d.inside.Wait()
}

func (d *stripeDoor) enter() http.Handler {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.handler != nil {
		d.inside.Add(1)
	}
	return d.handler
}

// ServeHTTP is for http.Handler.
func (d *stripeDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !d.configured {
		problem(w, http.StatusNotFound, "this Headroom receives no events of Stripe: set HEADROOM_STRIPE_WEBHOOK_SECRETS to the signing secret of the endpoint")
		return
	}
	answer := &answered{ResponseWriter: w, status: http.StatusOK}
	if handler := d.enter(); handler != nil {
		defer d.inside.Done()
		handler.ServeHTTP(answer, r)
	} else {
		w.Header().Set("Retry-After", "5")
		problem(answer, http.StatusServiceUnavailable, "events cannot be stored at the moment: send it again")
	}
	if count, known := d.counts[answer.status]; known {
		count.Add(1)
	} else {
		d.other.Add(1)
	}
}

// answered remembers the status of an answer.
type answered struct {
	http.ResponseWriter
	status int
}

// WriteHeader is for http.ResponseWriter.
func (a *answered) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// problem answers as RFC 9457 says.
func problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{ // who hung up does not hear it
		"type": "about:blank", "title": http.StatusText(status), "status": status, "detail": detail,
	})
}
