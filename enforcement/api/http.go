package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/google/uuid"

	"github.com/headroomhq/headroom/enforcement/problems"
)

const (
	// MaxBody is the largest request body that is read, in bytes.
	MaxBody = 64 << 10
	// defaultTimeout bounds the work on one request, well inside the time that a
	// server gives for writing the answer.
	defaultTimeout = 10 * time.Second
)

// Options are what the HTTP door is made of. All but Tokens, Timeout and Now are needed.
type Options struct {
	Executions Executor
	Reader     Viewer
	Counters   Counter
	// Invalidator is subscriptions.Store.
	Invalidator Invalidator
	Claims      Claims
	// Tokens are who may ask; without any everybody may, so the address must then be
	// one that only this machine reaches.
	Tokens Tokens
	// Timeout bounds the work on one request; 10 s unless set. What takes longer is a
	// problem with status 503.
	Timeout time.Duration
	Log     *slog.Logger
	Now     func() time.Time
}

// HTTP serves the routes of the contract. Every answer that is no success is a
// Problem, those of the mux and of a panic too.
//
//	request ─► token, scope ─► path, query, key ─► body, held against the document ─┐
//	                                                                                ▼
//	  201, 200, 202 ◄─ a decision, a balance, a view ◄── Executions, Counters, Reader, Invalidator
//	  problem+json  ◄─ problemOf(err), problems.OfDecision(d)
//
// The mux and the OpenAPI document are made from one table (routes), and a body is
// checked against its schema in the document: the two cannot differ. Schemas and
// document are huma's. Its own binding of requests is not used: it takes another case of
// a name for the name, lets the second of two equal names win, reads numbers as floating
// point, and makes errors by a process-wide function.
type HTTP struct {
	executions  Executor
	reader      Viewer
	counters    Counter
	invalidator Invalidator
	claims      Claims
	tokens      Tokens
	timeout     time.Duration
	log         *slog.Logger
	now         func() time.Time
	handler     http.Handler
}

// NewHTTP makes the door. The error is a fault of the route table itself.
func NewHTTP(o Options) (*HTTP, error) {
	h := &HTTP{
		executions: o.Executions, reader: o.Reader, counters: o.Counters, invalidator: o.Invalidator, claims: o.Claims,
		tokens: o.Tokens, timeout: o.Timeout, log: o.Log, now: o.Now,
	}
	if h.timeout <= 0 {
		h.timeout = defaultTimeout
	}
	if h.now == nil {
		h.now = time.Now
	}
	spec, err := newSpec()
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for _, route := range routes() {
		mux.Handle(route.method+" "+route.path, h.serve(route, spec.bodies[route.id]))
	}
	for path, write := range map[string]func() ([]byte, error){documentPath: Document, olderDocumentPath: DocumentForClients} {
		text, err := write()
		if err != nil {
			return nil, fmt.Errorf("write the openapi document: %w", err)
		}
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentJSON)
			_, _ = w.Write(text) // who hung up does not hear it
		})
	}
	h.handler = WithProblems(mux, h.log)
	return h, nil
}

// ServeHTTP is for http.Handler.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.handler.ServeHTTP(w, r) }

// Paths are the patterns under which a mux hands requests over to HTTP.
func Paths() []string { return []string{"/v1/", "/api/core/", documentPath, olderDocumentPath} }

// serve answers one route. The body, if there is one, is checked by its schema.
func (h *HTTP) serve(route route, body *bodyCheck) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		token, p := h.tokens.admit(r, route.scope)
		if p != nil {
			challenge(w.Header(), p)
			h.fail(w, r, p)
			return
		}
		c := &exchange{route: route, token: token, header: w.Header(), request: r, now: h.now}
		if err := c.read(w, body); err != nil {
			h.fail(w, r, err)
			return
		}
		ctx, cancel := context.WithTimeout(WithTrace(r.Context(), r.Header), h.timeout)
		defer cancel()
		answer, err := route.serve(ctx, h, c)
		if err != nil {
			h.fail(w, r, err)
			return
		}
		if len(answer) > 0 {
			w.Header().Set("Content-Type", contentJSON)
		}
		w.WriteHeader(route.status)
		_, _ = w.Write(answer) // who hung up does not hear it
	})
}

// fail answers with the problem that the error is, and logs what a client cannot mend.
func (h *HTTP) fail(w http.ResponseWriter, r *http.Request, err error) {
	instance := "urn:uuid:" + newID()
	p := problemOf(err, instance)
	switch {
	case errors.Is(r.Context().Err(), context.Canceled): // the client hung up: its business
	case p.Slug() == problems.Internal:
		h.log.Error("request failed", "method", r.Method, "path", r.URL.Path, "instance", instance, "error", err)
	case p.Slug() == problems.Unavailable:
		h.log.Warn("request could not be served", "method", r.Method, "path", r.URL.Path, "instance", instance, "error", causeOf(p, err))
	default:
		h.log.Debug("request refused", "method", r.Method, "path", r.URL.Path, "instance", p.Instance, "problem", p.Slug(), "error", err)
	}
	p.Write(w, h.now())
}

// problemOf is problems.Of, and knows what only a door can tell.
func problemOf(err error, instance string) *problems.Problem {
	if !errors.Is(err, ErrRecorded) {
		return problems.Of(err, instance)
	}
	p := problems.New(problems.Unavailable,
		"the completion is recorded and will be applied as soon as Redis is back; asking again is harmless").Because(err)
	p.Instance = instance
	return p
}

func causeOf(p *problems.Problem, err error) error {
	if cause := errors.Unwrap(p); cause != nil {
		return cause
	}
	return err
}

// newID is a UUIDv7: what is minted later sorts later.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// WithProblems serves mux, and has its own answers (no such route, method not allowed,
// a path that is not written as it should be) and a panic told as Problems. OPTIONS is
// answered with the methods of the path.
func WithProblems(mux *http.ServeMux, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if cause := recover(); cause != nil {
				panicked(w, r, log, cause)
			}
		}()
		if answerUnrouted(mux, w, r) {
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// panicked tells of a panic, unless that is how an answer is aborted.
func panicked(w http.ResponseWriter, r *http.Request, log *slog.Logger, cause any) {
	if cause == http.ErrAbortHandler { //nolint:errorlint // net/http compares it the same way
		panic(cause)
	}
	p := problems.Of(fmt.Errorf("panic: %v", cause), "").Occurred()
	log.Error("request panicked", "method", r.Method, "path", r.URL.Path, "instance", p.Instance,
		"panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
	p.Write(w, time.Time{})
}

// Unavailable answers every request with the problem of that kind, for a server that
// does not serve yet.
func Unavailable(detail string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		problems.New(problems.Unavailable, detail).Occurred().Write(w, time.Time{})
	})
}
