package webhooks

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/stripe/stripe-go/v79"
)

// apiFault is what a failed call asks of whoever made it.
type apiFault int

const (
	// faultBusy: the same call may succeed soon. Rate limits, locks, timeouts, faults of
	// Stripe or of the way to it.
	faultBusy apiFault = iota
	// faultRefused: the key must not, or the call is wrong. A person has to act.
	faultRefused
	// faultMissing: there is no such object for this key.
	faultMissing
)

// apiError is a call that failed.
type apiError struct {
	fault apiFault
	// status is 0 if nothing came back.
	status int
	path   string
	// wait is what Stripe asks to wait, 0 if it does not say.
	wait  time.Duration
	cause error
}

// Error tells what was asked for and what came back; it has no key in it.
func (e *apiError) Error() string {
	if e.status == 0 {
		return fmt.Sprintf("ask stripe for %s: %v", e.path, e.cause)
	}
	return fmt.Sprintf("ask stripe for %s: answered %d: %v", e.path, e.status, e.cause)
}

func (e *apiError) Unwrap() error { return e.cause }

// fault counts an error and says what kind it is.
func (a *API) fault(c call, err error) *apiError {
	e := &apiError{path: c.path, cause: err}
	var said *stripe.Error
	if errors.As(err, &said) {
		e.status, e.cause = said.HTTPStatusCode, errors.New(tidy(said.Msg))
		if said.LastResponse != nil {
			e.wait = waitOf(said.LastResponse.Header)
		}
	}
	if e.status == http.StatusTooManyRequests {
		a.tally.limited.Add(1)
	} else {
		a.tally.failed.Add(1)
	}
	switch {
	case e.status == http.StatusNotFound, said != nil && said.Code == stripe.ErrorCodeResourceMissing:
		// Of an object that a parameter names Stripe says so with a 400.
		e.fault = faultMissing
	case e.status == http.StatusTooManyRequests, e.status == http.StatusConflict, e.status == http.StatusRequestTimeout:
		e.fault = faultBusy
	case e.status >= http.StatusBadRequest && e.status < http.StatusInternalServerError:
		e.fault = faultRefused
	}
	return e
}

func waitOf(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, 60)) * time.Second
}

// isFault reports whether an error is a failed call of the kind.
func isFault(err error, kind apiFault) bool {
	var e *apiError
	return errors.As(err, &e) && e.fault == kind
}
