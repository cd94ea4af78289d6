package stripetest

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// Fault is something that goes wrong with calls of the API.
type Fault struct {
	// Path is how the paths that it strikes begin, empty for all.
	Path string
	// Times is how many calls it strikes: 1 if not given, below zero all.
	Times int
	// Status is the error to answer with, such as 500 or 429; 0 answers properly, after
	// what is below.
	Status int
	// Code is the error's code, such as "lock_timeout" with 429; default "rate_limit"
	// there.
	Code string
	// Delay holds the answer up for a time, Hold until it is closed. What is answered
	// is what was true before.
	Delay time.Duration
	Hold  <-chan struct{}
	// Cut closes the connection in the middle of the answer.
	Cut bool
}

// Break makes calls fail. Of several faults the one that was given first strikes first.
func (s *Stripe) Break(f Fault) {
	s.api.mu.Lock()
	defer s.api.mu.Unlock()
	f.Times = orElse(f.Times, 1)
	s.api.faults = append(s.api.faults, &f)
}

// Mend ends all faults and the rate limit.
func (s *Stripe) Mend() {
	s.api.mu.Lock()
	defer s.api.mu.Unlock()
	s.api.faults, s.api.limit = nil, limit{}
}

// LimitRate answers calls beyond so many in a window of real time with a plain 429, which
// the SDK, unlike one of a lock timeout, does not retry by itself.
func (s *Stripe) LimitRate(calls int, window time.Duration) {
	s.api.mu.Lock()
	defer s.api.mu.Unlock()
	s.api.limit = limit{calls: calls, window: window}
}

// limit is a fixed window; the zero limit is none.
type limit struct {
	calls  int
	window time.Duration
	since  time.Time
	used   int
}

func (l *limit) takes(now time.Time) bool {
	if l.window <= 0 {
		return true
	}
	if now.Sub(l.since) >= l.window {
		l.since, l.used = now, 0
	}
	l.used++
	return l.used <= l.calls
}

func (a *api) strike(path string) Fault {
	for at, fault := range a.faults {
		if !strings.HasPrefix(path, fault.Path) {
			continue
		}
		fault.Times--
		if fault.Times == 0 {
			a.faults = append(a.faults[:at:at], a.faults[at+1:]...)
		}
		return *fault
	}
	return Fault{}
}

// pass is false if the caller has gone while it was held up.
func (f Fault) pass(ctx context.Context) bool {
	if f.Hold != nil {
		select {
		case <-f.Hold:
		case <-ctx.Done():
			return false
		}
	}
	return f.Delay <= 0 || wait(ctx, f.Delay)
}

func (f Fault) refusal() *Error {
	switch {
	case f.Status == 0:
		return nil
	case f.Status == http.StatusTooManyRequests:
		return &Error{
			Status: f.Status, Type: invalidRequest, Code: orElse(f.Code, "rate_limit"),
			Message: "Request rate limit exceeded.",
		}
	default:
		return &Error{Status: f.Status, Type: "api_error", Code: f.Code, Message: "An unknown error occurred"}
	}
}
