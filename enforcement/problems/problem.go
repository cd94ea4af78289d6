package problems

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// Problem is an answer that is no success, as RFC 9457 (problem details) has it. It is
// an error too, so that whatever finds one can return it. The micro-service sends the
// same body.
//
// Members that say nothing of a kind of problem are left out. Used, LimitValue and
// Remaining are in the limit's own unit: bytes where Limit is storage_bytes.
type Problem struct {
	Type         string       `json:"type" format:"uri" doc:"Names the kind of problem; the address of its section in the documentation."`
	Title        string       `json:"title" doc:"The kind of problem in a few words, the same each time."`
	Status       int          `json:"status" minimum:"400" maximum:"599" doc:"The HTTP status."`
	Detail       string       `json:"detail" doc:"What was wrong this time, for a person."`
	Instance     string       `json:"instance,omitempty" format:"uri-reference" doc:"This very occurrence: the decision's place in the record, or the id that the log has it under."`
	Code         int          `json:"code,omitempty" minimum:"9001" maximum:"9008" doc:"The decision's code, where a plan's limit refused."`
	Name         string       `json:"error,omitempty" doc:"The name of the code, or of the refusal."`
	Limit        string       `json:"limit,omitempty" doc:"The limit or feature that refused."`
	LimitValue   *int64       `json:"limit_value,omitempty" doc:"How much it allows."`
	Used         *int64       `json:"used,omitempty" doc:"How much is used."`
	Remaining    *int64       `json:"remaining,omitempty" doc:"How much is left."`
	ResetsAt     *time.Time   `json:"resets_at,omitempty" doc:"When it begins anew."`
	RetryAfterMS *int64       `json:"retry_after_ms,omitempty" doc:"After how many milliseconds the same request may be allowed."`
	UpgradeHint  string       `json:"upgrade_hint,omitempty" doc:"What would lift the refusal, for a person."`
	Scope        string       `json:"required_scope,omitempty" enum:"read,execute,admin" doc:"The scope that the token lacks."`
	Errors       []FieldFault `json:"errors,omitempty" nullable:"false" doc:"Each fault of the request."`

	// cause is what led here, for the log alone.
	cause error
}

// FieldFault is one thing that is wrong with a request.
type FieldFault struct {
	Field  string `json:"field" doc:"The field, parameter or header at fault, such as checks[2].feature."`
	Detail string `json:"detail" doc:"What is wrong with it."`
}

// ContentType is RFC 9457's.
const ContentType = "application/problem+json"

// Error is the detail.
func (p *Problem) Error() string { return p.Detail }

// Unwrap is what led to the problem, nil where the request itself did.
func (p *Problem) Unwrap() error { return p.cause }

// New is a problem of a kind of the table.
func New(slug, detail string) *Problem {
	kind := TypeOf(slug)
	return &Problem{
		Type: kind.URI(), Title: kind.Title, Status: kind.Status, Detail: detail, Code: kind.Code, Name: kind.Name,
	}
}

// Occurred gives the problem an instance that nothing else has.
func (p *Problem) Occurred() *Problem {
	p.Instance = "urn:uuid:" + uuid.Must(uuid.NewV7()).String()
	return p
}

// Because keeps what led to the problem.
func (p *Problem) Because(err error) *Problem {
	p.cause = err
	return p
}

// maxFaults is how many faults a problem lists: an answer must not be many times
// as long as the request that it refuses.
const maxFaults = 100

// InvalidRequest is a request whose fields are wrong. It lists the first hundred and
// counts the others.
func InvalidRequest(faults ...FieldFault) *Problem {
	detail := faults[0].Field + " " + faults[0].Detail
	if n := len(faults) - 1; n > 0 {
		detail += " (and " + strconv.Itoa(n) + " more)"
	}
	p := New(Invalid, detail)
	p.Errors = faults[:min(len(faults), maxFaults)]
	return p
}

// RetryAfter is how long a client should wait; 0 where waiting is no use.
func (p *Problem) RetryAfter(now time.Time) time.Duration {
	kind := TypeOf(p.Slug())
	switch {
	case kind.Retry == 0:
		return 0
	case p.RetryAfterMS != nil:
		return time.Duration(min(*p.RetryAfterMS, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	case kind.Resets && p.ResetsAt != nil:
		return max(p.ResetsAt.Sub(now), time.Second)
	default:
		return kind.Retry
	}
}

// Write sends the problem. now is for the fields that count from it.
func (p *Problem) Write(w http.ResponseWriter, now time.Time) {
	h := w.Header()
	h.Set("Content-Type", ContentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if wait := p.RetryAfter(now); wait > 0 {
		h.Set("Retry-After", strconv.FormatInt(Seconds(wait), 10))
	}
	if p.Status == http.StatusTooManyRequests {
		SetRateLimit(h, p.quota(now))
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(p.Body()) // who hung up does not hear it
}

// Body is the problem's JSON.
func (p *Problem) Body() []byte {
	body, err := json.Marshal(p)
	if err != nil {
		panic("problems: a problem cannot be written: " + err.Error()) // it holds nothing but texts and numbers
	}
	return body
}

// Seconds is a time to wait in whole seconds, never shorter, and at least one.
func Seconds(d time.Duration) int64 {
	return max(int64((d+time.Second-1)/time.Second), 1)
}
