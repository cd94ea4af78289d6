package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/headroomhq/headroom/enforcement"
)

// ProblemBase is what the type of every problem begins with: the page that has a
// section for each.
const ProblemBase = "https://github.com/headroomhq/headroom/blob/main/docs/problems.md#"

// ProblemType is a kind of problem: the same cause, the same remedy.
type ProblemType struct {
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
func (t ProblemType) URI() string { return ProblemBase + t.Slug }

// The slugs of the problems.
const (
	slugExecutions  = "plan-execution-limit-reached"
	slugConcurrency = "plan-concurrent-execution-limit-reached"
	slugTasks       = "plan-task-per-execution-limit-reached"
	slugDuration    = "plan-execution-timeout"
	slugRate        = "plan-rate-limit-exceeded"
	slugPayload     = "plan-payload-size-exceeded"
	slugStorage     = "plan-storage-limit-reached"
	slugUndecided   = "plan-enforcement-unavailable"
	slugQuota       = "quota-exceeded"
	slugPolicy      = "policy-violation"
	slugLocked      = "resource-locked"
	slugNotEntitled = "not-entitled"

	slugUnauthorized = "unauthorized"
	slugScope        = "insufficient-scope"
	slugNotFound     = "not-found"
	slugNotRunning   = "execution-not-running"
	slugMethod       = "method-not-allowed"
	slugMalformed    = "malformed-body"
	slugInvalid      = "invalid-request"
	slugMediaType    = "unsupported-media-type"
	slugTooLarge     = "body-too-large"
	slugKeyReused    = "idempotency-key-reused"
	slugUnavailable  = "unavailable"
	slugInternal     = "internal-error"
)

// ProblemTypes is every kind of problem, in the order of docs/problems.md.
func ProblemTypes() []ProblemType { return append(planProblems(), requestProblems()...) }

// problemType finds a kind of problem; one that is not in the table is a fault of ours.
func problemType(slug string) ProblemType {
	for _, t := range ProblemTypes() {
		if t.Slug == slug {
			return t
		}
	}
	return ProblemType{Slug: slugInternal, Title: "Internal error", Status: http.StatusInternalServerError}
}

// slug is the problem's kind.
func (p *Problem) slug() string { return strings.TrimPrefix(p.Type, ProblemBase) }

// slugOfCode is the problem that a decision's code makes.
func slugOfCode(code int) string {
	for _, t := range planProblems() {
		if t.Code == code {
			return t.Slug
		}
	}
	return slugInternal
}

// planProblems are those that a plan makes.
func planProblems() []ProblemType {
	const (
		tooMany = http.StatusTooManyRequests
		wrong   = http.StatusUnprocessableEntity
		soon    = 5 * time.Second
		later   = time.Minute
	)
	decided := func(code int, slug, title string, status int, retry time.Duration, when string) ProblemType {
		return ProblemType{
			Slug: slug, Title: title, Status: status, Code: code, Name: enforcement.CodeName(code), When: when, Retry: retry,
			Resets: retry == later,
		}
	}
	return []ProblemType{
		decided(enforcement.CodeExecutionQuota, slugExecutions, "Execution limit reached", tooMany, later,
			"The executions that the plan allows in this period are used up."),
		decided(enforcement.CodeConcurrency, slugConcurrency, "Too many executions at once", tooMany, soon,
			"As many executions run as the plan allows at one moment."),
		decided(enforcement.CodeTasks, slugTasks, "Too many tasks in one execution", wrong, 0,
			"A running execution reported more tasks than the plan allows in one."),
		decided(enforcement.CodeDuration, slugDuration, "Execution ran too long", wrong, 0,
			"A running execution has run for longer than the plan allows."),
		decided(enforcement.CodeRate, slugRate, "Too many executions in a minute", tooMany, soon,
			"Executions were started faster than the plan allows."),
		decided(enforcement.CodePayload, slugPayload, "Payload too large", wrong, 0,
			"The payload that was stated is larger than the plan allows."),
		decided(enforcement.CodeStorage, slugStorage, "Storage limit reached", tooMany, later,
			"The plan has no room for so many more stored bytes."),
		decided(enforcement.CodeUnavailable, slugUndecided, "Could not decide", http.StatusServiceUnavailable, soon,
			"Headroom could not decide in time, and so the execution is refused."),
		{
			Slug: slugQuota, Title: "Quota exceeded", Status: tooMany, Name: "QuotaExceeded", Retry: later, Resets: true,
			When: "The plan includes the feature, and less than was asked for is left of it.",
		},
		{
			Slug: slugPolicy, Title: "Not part of the plan", Status: wrong, Name: "PolicyViolation",
			When: "The plan does not include the feature, no plan knows it, or it is one that is not counted.",
		},
		{
			Slug: slugLocked, Title: "Resource is locked", Status: http.StatusLocked, Name: "ResourceLocked",
			When: "Since a downgrade there are more resources than the plan allows, and this is one of those beyond.",
		},
		{
			Slug: slugNotEntitled, Title: "Workspace is not entitled", Status: http.StatusForbidden, Name: "NotEntitled",
			When: "The workspace was never seen, and HEADROOM_UNKNOWN_WORKSPACE is deny.",
		},
	}
}

// requestProblems are those of the request and of Headroom itself.
func requestProblems() []ProblemType {
	return []ProblemType{
		{
			Slug: slugUnauthorized, Title: "Unauthorized", Status: http.StatusUnauthorized,
			When: "The request has no bearer token, or one that is not known.",
		},
		{
			Slug: slugScope, Title: "Token lacks a scope", Status: http.StatusForbidden,
			When: "The token is known and may not do this; required_scope is what it lacks.",
		},
		{
			Slug: slugNotFound, Title: "No such route", Status: http.StatusNotFound,
			When: "Nothing is served at this path.",
		},
		{
			Slug: slugNotRunning, Title: "Execution is not running", Status: http.StatusNotFound,
			When: "Progress was reported for an execution that holds no lease: it was never admitted, is over, or its lease ended.",
		},
		{
			Slug: slugMethod, Title: "Method not allowed", Status: http.StatusMethodNotAllowed,
			When: "The path exists and not with this method; the Allow field lists those that do.",
		},
		{
			Slug: slugMalformed, Title: "Body cannot be read", Status: http.StatusBadRequest,
			When: "The body is not one JSON value in UTF-8, or did not arrive.",
		},
		{
			Slug: slugInvalid, Title: "Request is wrong", Status: http.StatusUnprocessableEntity,
			When: "A field of the body, a part of the path, a parameter or a header is wrong, missing or not known; errors lists each.",
		},
		{
			Slug: slugMediaType, Title: "Unsupported media type", Status: http.StatusUnsupportedMediaType,
			When: "The body is not said to be application/json, or it is compressed.",
		},
		{
			Slug: slugTooLarge, Title: "Body is too large", Status: http.StatusRequestEntityTooLarge,
			When: "The body has more than 65,536 bytes.",
		},
		{
			Slug: slugKeyReused, Title: "Idempotency key was used for another request", Status: http.StatusUnprocessableEntity,
			When: "The same Idempotency-Key came with another request in the last 24 hours; nothing was decided.",
		},
		{
			Slug: slugUnavailable, Title: "Unavailable", Status: http.StatusServiceUnavailable, Retry: 5 * time.Second,
			When: "Redis, PostgreSQL or NATS is away, Headroom starts or ends, no catalog was applied, or the answer took too long.",
		},
		{
			Slug: slugInternal, Title: "Internal error", Status: http.StatusInternalServerError,
			When: "Something went wrong inside Headroom; instance is what its log has it under.",
		},
	}
}
