package problems

import (
	"net/http"
	"strings"
	"time"

	"github.com/headroomhq/headroom/enforcement"
)

// Base is what the type of every problem begins with: the page that has a
// section for each.
const Base = "https://github.com/headroomhq/headroom/blob/main/docs/problems.md#"

// Type is a kind of problem: the same cause, the same remedy.
type Type struct {
	// Slug is the anchor of its section.
	Slug  string
	Title string
	// Status is the HTTP status.
	Status int
	// Code is a decision's code, 0 for what is no decision, and Name its name.
	Code int
	Name string
	// When says in one sentence when it happens.
	When string
	// Retry is how long to wait where nothing better is known; 0 where waiting is no use.
	Retry time.Duration
	// Resets is whether waiting until resets_at is what helps.
	Resets bool
}

// URI is the problem's type.
func (t Type) URI() string { return Base + t.Slug }

// The slugs of the problems: the anchors of their sections, by which New makes one.
const (
	Executions      = "plan-execution-limit-reached"
	Concurrency     = "plan-concurrent-execution-limit-reached"
	Tasks           = "plan-task-per-execution-limit-reached"
	Duration        = "plan-execution-timeout"
	Rate            = "plan-rate-limit-exceeded"
	Payload         = "plan-payload-size-exceeded"
	Storage         = "plan-storage-limit-reached"
	Undecided       = "plan-enforcement-unavailable"
	QuotaExceeded   = "quota-exceeded"
	PolicyViolation = "policy-violation"
	ResourceLocked  = "resource-locked"
	NotEntitled     = "not-entitled"

	Unauthorized = "unauthorized"
	Scope        = "insufficient-scope"
	NotFound     = "not-found"
	NotRunning   = "execution-not-running"
	Method       = "method-not-allowed"
	Malformed    = "malformed-body"
	Invalid      = "invalid-request"
	MediaType    = "unsupported-media-type"
	TooLarge     = "body-too-large"
	KeyReused    = "idempotency-key-reused"
	Unavailable  = "unavailable"
	Internal     = "internal-error"
)

// Types is every kind of problem, in the order of docs/problems.md.
func Types() []Type { return append(planProblems(), requestProblems()...) }

// TypeOf finds a kind of problem; one that is not in the table is a fault of ours.
func TypeOf(slug string) Type {
	for _, t := range Types() {
		if t.Slug == slug {
			return t
		}
	}
	return Type{Slug: Internal, Title: "Internal error", Status: http.StatusInternalServerError}
}

// Slug is the problem's kind.
func (p *Problem) Slug() string { return strings.TrimPrefix(p.Type, Base) }

// ofCode is the problem that a decision's code makes.
func ofCode(code int) string {
	for _, t := range planProblems() {
		if t.Code == code {
			return t.Slug
		}
	}
	return Internal
}

// planProblems are those that a plan makes.
func planProblems() []Type {
	const (
		tooMany = http.StatusTooManyRequests
		wrong   = http.StatusUnprocessableEntity
		soon    = 5 * time.Second
		later   = time.Minute
	)
	decided := func(code int, slug, title string, status int, retry time.Duration, when string) Type {
		return Type{
			Slug: slug, Title: title, Status: status, Code: code, Name: enforcement.CodeName(code), When: when, Retry: retry,
			Resets: retry == later,
		}
	}
	return []Type{
		decided(enforcement.CodeExecutionQuota, Executions, "Execution limit reached", tooMany, later,
			"The executions that the plan allows in this period are used up."),
		decided(enforcement.CodeConcurrency, Concurrency, "Too many executions at once", tooMany, soon,
			"As many executions run as the plan allows at one moment."),
		decided(enforcement.CodeTasks, Tasks, "Too many tasks in one execution", wrong, 0,
			"A running execution reported more tasks than the plan allows in one."),
		decided(enforcement.CodeDuration, Duration, "Execution ran too long", wrong, 0,
			"A running execution has run for longer than the plan allows."),
		decided(enforcement.CodeRate, Rate, "Too many executions in a minute", tooMany, soon,
			"Executions were started faster than the plan allows."),
		decided(enforcement.CodePayload, Payload, "Payload too large", wrong, 0,
			"The payload that was stated is larger than the plan allows."),
		decided(enforcement.CodeStorage, Storage, "Storage limit reached", tooMany, later,
			"The plan has no room for so many more stored bytes."),
		decided(enforcement.CodeUnavailable, Undecided, "Could not decide", http.StatusServiceUnavailable, soon,
			"Headroom could not decide in time, and so the execution is refused."),
		{
			Slug: QuotaExceeded, Title: "Quota exceeded", Status: tooMany, Name: "QuotaExceeded", Retry: later, Resets: true,
			When: "The plan includes the feature, and less than was asked for is left of it.",
		},
		{
			Slug: PolicyViolation, Title: "Not part of the plan", Status: wrong, Name: "PolicyViolation",
			When: "The plan does not include the feature, no plan knows it, or it is one that is not counted.",
		},
		{
			Slug: ResourceLocked, Title: "Resource is locked", Status: http.StatusLocked, Name: "ResourceLocked",
			When: "Since a downgrade there are more resources than the plan allows, and this is one of those beyond.",
		},
		{
			Slug: NotEntitled, Title: "Workspace is not entitled", Status: http.StatusForbidden, Name: "NotEntitled",
			When: "The workspace was never seen, and HEADROOM_UNKNOWN_WORKSPACE is deny.",
		},
	}
}

// requestProblems are those of the request and of Headroom itself.
func requestProblems() []Type {
	return []Type{
		{
			Slug: Unauthorized, Title: "Unauthorized", Status: http.StatusUnauthorized,
			When: "The request has no bearer token, or one that is not known.",
		},
		{
			Slug: Scope, Title: "Token lacks a scope", Status: http.StatusForbidden,
			When: "The token is known and may not do this; required_scope is what it lacks.",
		},
		{
			Slug: NotFound, Title: "No such route", Status: http.StatusNotFound,
			When: "Nothing is served at this path.",
		},
		{
			Slug: NotRunning, Title: "Execution is not running", Status: http.StatusNotFound,
			When: "Progress was reported for an execution that holds no lease: it was never admitted, is over, or its lease ended.",
		},
		{
			Slug: Method, Title: "Method not allowed", Status: http.StatusMethodNotAllowed,
			When: "The path exists and not with this method; the Allow field lists those that do.",
		},
		{
			Slug: Malformed, Title: "Body cannot be read", Status: http.StatusBadRequest,
			When: "The body is not one JSON value in UTF-8, or did not arrive.",
		},
		{
			Slug: Invalid, Title: "Request is wrong", Status: http.StatusUnprocessableEntity,
			When: "A field of the body, a part of the path, a parameter or a header is wrong, missing or not known; errors lists each.",
		},
		{
			Slug: MediaType, Title: "Unsupported media type", Status: http.StatusUnsupportedMediaType,
			When: "The body is not said to be application/json, or it is compressed.",
		},
		{
			Slug: TooLarge, Title: "Body is too large", Status: http.StatusRequestEntityTooLarge,
			When: "The body has more than 65,536 bytes.",
		},
		{
			Slug: KeyReused, Title: "Idempotency key was used for another request", Status: http.StatusUnprocessableEntity,
			When: "The same Idempotency-Key came with another request in the last 24 hours; nothing was decided.",
		},
		{
			Slug: Unavailable, Title: "Unavailable", Status: http.StatusServiceUnavailable, Retry: 5 * time.Second,
			When: "Redis, PostgreSQL or NATS is away, Headroom starts or ends, no catalog was applied, or the answer took too long.",
		},
		{
			Slug: Internal, Title: "Internal error", Status: http.StatusInternalServerError,
			When: "Something went wrong inside Headroom; instance is what its log has it under.",
		},
	}
}
