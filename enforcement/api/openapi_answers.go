package api

import (
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/headroomhq/headroom/enforcement/problems"
)

// success is the answer of a route that did what was asked.
func (s *spec) success(r route) *huma.Response {
	answer := &huma.Response{Description: http.StatusText(r.status), Headers: make(map[string]*huma.Param)}
	if r.answer != nil {
		schema := s.document.Components.Schemas.Schema(r.answer, true, r.id+"Answer")
		answer.Content = map[string]*huma.MediaType{contentJSON: {Schema: schema}}
	}
	if r.limited {
		addRateLimit(answer.Headers, false)
	}
	if r.paged {
		answer.Headers["Link"] = textHeader(`The next page, rel="next", where there is more.`, false)
	}
	return answer
}

// addProblem adds a kind of problem to the answers of its status, with an example.
func addProblem(op *huma.Operation, slug string, schema *huma.Schema) {
	kind := problems.TypeOf(slug)
	status := strconv.Itoa(kind.Status)
	answer := op.Responses[status]
	if answer == nil {
		answer = &huma.Response{
			Description: http.StatusText(kind.Status), Headers: problemHeaders(kind.Status),
			Content: map[string]*huma.MediaType{problems.ContentType: {Schema: schema, Examples: make(map[string]*huma.Example)}},
		}
		op.Responses[status] = answer
	}
	answer.Content[problems.ContentType].Examples[slug] = &huma.Example{Summary: kind.When, Value: exampleProblem(kind)}
}

func exampleProblem(kind problems.Type) map[string]any {
	example := map[string]any{"type": kind.URI(), "title": kind.Title, "status": kind.Status, "detail": kind.When}
	if kind.Code != 0 {
		example["code"] = kind.Code
	}
	if kind.Name != "" {
		example["error"] = kind.Name
	}
	return example
}

func problemHeaders(status int) map[string]*huma.Param {
	headers := make(map[string]*huma.Param)
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		headers["WWW-Authenticate"] = textHeader("How to be let in (RFC 6750).", status == http.StatusUnauthorized)
	case http.StatusTooManyRequests:
		addRateLimit(headers, true)
	}
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		headers["Retry-After"] = &huma.Param{
			Description: "After how many seconds to ask again.", Required: true,
			Schema: &huma.Schema{Type: huma.TypeInteger},
		}
	}
	return headers
}

func addRateLimit(headers map[string]*huma.Param, required bool) {
	headers["RateLimit-Policy"] = textHeader("The limits that count, such as \"automations\";q=5 (draft-ietf-httpapi-ratelimit-headers-10).", required)
	headers["RateLimit"] = textHeader("What is left of each and when it begins anew, such as \"automations\";r=1;t=3600.", required)
}

func textHeader(doc string, required bool) *huma.Param {
	return &huma.Param{Description: doc, Required: required, Schema: &huma.Schema{Type: huma.TypeString}}
}
