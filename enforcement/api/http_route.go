package api

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/headroomhq/headroom/enforcement/problems"
	"github.com/headroomhq/headroom/schemas"
)

// route is one line of the table that the mux and the OpenAPI document are made from.
type route struct {
	// id is the operation's name, which a generated client calls it by.
	id, method, path     string
	scope                Scope
	summary, description string
	query                []parameter
	// body and answer are the Go types of what comes in and goes out; nil is nothing.
	body, answer reflect.Type
	// optional bodies may be left out.
	optional bool
	status   int
	// limited answers carry the RateLimit fields, paged ones a Link.
	limited, paged bool
	// problems are the slugs of those that only some routes have.
	problems []string
	serve    func(ctx context.Context, h *HTTP, c *exchange) ([]byte, error)
}

// routes are all of them but the document itself.
func routes() []route {
	return slices.Concat(executionRoutes(), featureRoutes(), resourceRoutes(), viewRoutes(), invalidateRoutes())
}

// pathNames are the names of what stands in the path.
func (r route) pathNames() []string {
	var names []string
	for part := range strings.SplitSeq(r.path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			names = append(names, strings.TrimSuffix(name, "}"))
		}
	}
	return names
}

// slugs are all the problems that the route can answer with.
func (r route) slugs() []string {
	list := append(slices.Clone(r.problems), problems.Unauthorized, problems.Scope, problems.Invalid, problems.Unavailable, problems.Internal)
	if r.body != nil {
		list = append(list, problems.Malformed, problems.MediaType, problems.TooLarge)
	}
	if r.method == http.MethodPost {
		list = append(list, problems.KeyReused)
	}
	return list
}

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// parameter is one of a route's query.
type parameter struct {
	name, doc string
	schema    *huma.Schema
	// check is what is wrong with a value, or empty.
	check func(value string) string
}

// The names of the parameters.
const (
	inLimit          = "limit"
	inBefore         = "before"
	inAfter          = "after"
	inExecutionQuery = "execution"
)

func limitParameter(otherwise, most int) parameter {
	low, high := 1.0, float64(most)
	return parameter{
		name: inLimit, doc: fmt.Sprintf("How many to return, %d unless given.", otherwise),
		schema: &huma.Schema{Type: huma.TypeInteger, Minimum: &low, Maximum: &high, Default: otherwise},
		check: func(value string) string {
			if n, err := strconv.Atoi(value); err != nil || n < 1 || n > most {
				return fmt.Sprintf("must be a whole number from 1 to %d", most)
			}
			return ""
		},
	}
}

func idSchema() *huma.Schema { return &huma.Schema{Type: huma.TypeString, Pattern: idPattern} }

func instantSchema() *huma.Schema { return &huma.Schema{Type: huma.TypeString, Format: "date-time"} }

func checkID(value string) string {
	if !schemas.ValidID(value) {
		return idRule
	}
	return ""
}

func checkInstant(value string) string {
	if new(time.Time).UnmarshalText([]byte(value)) != nil {
		return instantRule
	}
	return ""
}

// instantRule is for a person.
const instantRule = "must be an RFC 3339 time such as 2026-11-30T15:04:05Z"
