package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/headroomhq/headroom/enforcement/problems"
	"github.com/headroomhq/headroom/schemas"
)

// ask is one request whose parts were found right.
type ask struct {
	reply  string
	header nats.Header
	// key is the request's idempotency key, empty without one.
	key  string
	body []byte

	about
}

// about is what a request is about; what its endpoint does not name is empty.
type about struct {
	WorkspaceID string `json:"workspace_id"`
	ExecutionID string `json:"execution_id"`
	Feature     string `json:"feature"`
}

// event is the id of the event that the request makes: one with a key is the same event
// each time.
func (a *ask) event() string {
	if a.key != "" {
		return a.key
	}
	return newID()
}

// microAnswer is what is sent back where there is no service error.
type microAnswer struct {
	contentType string
	body        []byte
}

// told is an answer in JSON.
func told(v any) (microAnswer, error) {
	body, err := encoded(v)
	return microAnswer{contentType: contentJSON, body: body}, err
}

// handler reads the requests of an endpoint, one after the other, and has them served, many
// at once. What it answers itself is counted by the framework; a request that was handed
// over must not be answered through it, because it looks at its own counts meanwhile.
func (m *Micro) handler(ctx context.Context, e *endpoint) micro.Handler {
	ctx = context.WithoutCancel(ctx) // what was taken is answered
	return micro.HandlerFunc(func(r micro.Request) {
		a, err := m.read(e, r)
		if err == nil {
			select {
			case m.slots <- struct{}{}:
				go m.serve(ctx, e, a)
				return
			default:
				err = problems.New(problems.Unavailable, "too many requests are under way at this instance; ask again")
			}
		}
		if !answerable(r.Reply()) {
			m.options.Log.Warn("request ignored, its reply is no inbox", "endpoint", e.name)
			return
		}
		p := m.problem(e, err)
		if err := r.Error(strconv.Itoa(p.Status), p.Title, p.Body(), micro.WithHeaders(microHeaders(p))); err != nil {
			m.options.Log.Warn("problem not sent", "endpoint", e.name, "error", err)
		}
	})
}

// answerable reports whether an answer may be sent there: an inbox, or what the server makes
// of one for a requester in another account.
func answerable(reply string) bool {
	return schemas.ValidReply(reply, schemas.InboxPrefix) || schemas.ValidReply(reply, serviceReply)
}

// read checks a request. Its error is the request's own fault.
func (m *Micro) read(e *endpoint, r micro.Request) (a *ask, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = m.panicked(e, cause)
		}
	}()
	a = &ask{reply: r.Reply(), header: nats.Header(r.Headers())}
	if !answerable(a.reply) {
		return nil, problems.InvalidRequest(problems.FieldFault{Field: "reply", Detail: "must be an inbox"})
	}
	if len(r.Data()) > MaxBody {
		return nil, problems.New(problems.TooLarge, fmt.Sprintf("the body has more than %d bytes", MaxBody))
	}
	if a.key, err = microKey(a.header); err != nil {
		return nil, err
	}
	if a.body, err = e.check.read(r.Data()); err != nil {
		return nil, err
	}
	a.about, err = part[about](a)
	return a, err
}

// microKey is the idempotency key of a request: its own, or the id that makes a stream drop
// its repetitions.
func microKey(header nats.Header) (string, error) {
	for _, name := range [...]string{keyField, nats.MsgIdHdr} {
		value := schemas.HeaderValue(header, name)
		if value == "" {
			continue
		}
		key, fault := idempotencyKey(http.Header{keyField: {value}})
		if fault != nil {
			return "", problems.InvalidRequest(problems.FieldFault{Field: name, Detail: fault.Detail})
		}
		return key, nil
	}
	return "", nil
}

// part is the fields of a body that are a B's. It was checked, so they fit.
func part[B any](a *ask) (B, error) {
	var b B
	if err := json.Unmarshal(a.body, &b); err != nil {
		return b, fmt.Errorf("read a body that was checked: %w", err)
	}
	return b, nil
}

// serve answers one request.
func (m *Micro) serve(ctx context.Context, e *endpoint, a *ask) {
	end := e.counts.begin()
	defer func() { <-m.slots }()
	answer, err := m.answer(ctx, e, a)
	end(err != nil)
	out := &nats.Msg{Subject: a.reply, Data: answer.body, Header: nats.Header{"Content-Type": {answer.contentType}}}
	if err != nil {
		p := m.problem(e, err)
		out.Data, out.Header = p.Body(), nats.Header(microHeaders(p))
		out.Header.Set(micro.ErrorCodeHeader, strconv.Itoa(p.Status))
		out.Header.Set(micro.ErrorHeader, p.Title)
	}
	if err := m.options.NATS.PublishMsg(out); err != nil {
		m.options.Log.Warn("answer not sent", "endpoint", e.name, "workspace_id", a.WorkspaceID, "error", err)
	}
}

// answer serves, and makes a panic an error.
func (m *Micro) answer(ctx context.Context, e *endpoint, a *ask) (answer microAnswer, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = m.panicked(e, cause)
		}
	}()
	ctx, cancel := context.WithTimeout(WithTrace(ctx, a.header), m.options.Timeout)
	defer cancel()
	return e.serve(ctx, m, a)
}

func (m *Micro) panicked(e *endpoint, cause any) error {
	p := problems.Of(fmt.Errorf("panic: %v", cause), "").Occurred()
	m.options.Log.Error("request panicked", "endpoint", e.name, "instance", p.Instance,
		"panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
	return p
}

// problem is the problem that an error is; what the requester cannot mend is logged.
func (m *Micro) problem(e *endpoint, err error) *problems.Problem {
	p := problemOf(err, "urn:uuid:"+newID())
	switch p.Slug() {
	case problems.Internal:
		m.options.Log.Error("request failed", "endpoint", e.name, "instance", p.Instance, "error", causeOf(p, err))
	case problems.Unavailable:
		m.options.Log.Warn("request could not be served", "endpoint", e.name, "instance", p.Instance, "error", causeOf(p, err))
	default:
		m.options.Log.Debug("request refused", "endpoint", e.name, "instance", p.Instance, "problem", p.Slug(), "error", err)
	}
	return p
}

func microHeaders(p *problems.Problem) micro.Headers {
	h := micro.Headers{"Content-Type": {problems.ContentType}}
	if wait := p.RetryAfter(time.Now()); wait > 0 {
		h["Retry-After"] = []string{strconv.FormatInt(problems.Seconds(wait), 10)}
	}
	return h
}
