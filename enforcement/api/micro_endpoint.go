package api

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// endpoint is one thing that can be asked for.
type endpoint struct {
	// name is the last token of its subject.
	name, doc string
	// about is what stands in the path of HTTP and in the body here.
	about []string
	// body is the Go type of HTTP's body, nil for none.
	body  reflect.Type
	serve func(ctx context.Context, m *Micro, a *ask) (microAnswer, error)

	check  *bodyCheck
	counts endpointCounts
}

// endpointCounts is what became of the requests that were handed over.
type endpointCounts struct {
	served, failed, inside, worked atomic.Int64
}

// endpointStats are the counts as they are told.
type endpointStats struct {
	// Served is the number of requests that were answered, Failed of those how many with a
	// service error, InFlight how many are being served.
	Served   int64 `json:"served"`
	Failed   int64 `json:"failed"`
	InFlight int64 `json:"in_flight"`
	// ServingTime is how long serving took, added up, in nanoseconds.
	ServingTime int64 `json:"serving_time"`
}

func (c *endpointCounts) told() endpointStats {
	return endpointStats{Served: c.served.Load(), Failed: c.failed.Load(), InFlight: c.inside.Load(), ServingTime: c.worked.Load()}
}

// begin counts a request in, and what it returns counts it out.
func (c *endpointCounts) begin() (end func(failed bool)) {
	began := time.Now()
	c.inside.Add(1)
	return func(failed bool) {
		c.inside.Add(-1)
		c.served.Add(1)
		c.worked.Add(int64(time.Since(began)))
		if failed {
			c.failed.Add(1)
		}
	}
}

// metadata is what `nats micro info` shows.
func (e *endpoint) metadata() map[string]string {
	fields := slices.Sorted(maps.Keys(e.check.schema.Properties))
	for i, name := range fields {
		if !slices.Contains(e.check.schema.Required, name) {
			fields[i] += "?"
		}
	}
	return map[string]string{"description": e.doc, "request": strings.Join(fields, ", ")}
}

// microEndpoints are all of them.
func microEndpoints() (all []*endpoint, err error) {
	defer func() {
		if cause := recover(); cause != nil { // huma's registry, about two types of one name
			err = fmt.Errorf("describe the endpoints: %v", cause)
		}
	}()
	all = []*endpoint{
		{
			name: "admit", doc: "Asks for an execution to be admitted. The answer is the decision.",
			about: []string{inWorkspace}, body: typeOf[admitBody](), serve: askAdmit,
		},
		{
			name: "progress", doc: "Reports the progress of a running execution and extends its lease. A decision for an answer says that it must stop.",
			about: []string{inWorkspace, inExecution}, body: typeOf[progressBody](), serve: askProgress,
		},
		{
			name: "complete", doc: "Says that an execution is over.",
			about: []string{inWorkspace, inExecution}, body: typeOf[completeBody](), serve: askComplete,
		},
		{
			name: "consume", doc: "Takes units of a feature. A problem for an answer says that there is no room.",
			about: []string{inWorkspace, inFeature}, body: typeOf[changeBody](), serve: askConsume,
		},
		{
			name: "release", doc: "Gives units of a feature back.",
			about: []string{inWorkspace, inFeature}, body: typeOf[changeBody](), serve: askRelease,
		},
		{
			name: "check", doc: "Asks for many things at once whether there is room, consuming nothing.",
			about: []string{inWorkspace}, body: typeOf[checkBody](), serve: askCheck,
		},
		{
			name: "usage", doc: "A workspace's plan, subscription, period, limits and usage.",
			about: []string{inWorkspace}, serve: askUsage,
		},
	}
	registry := huma.NewMapRegistry(schemaPrefix, schemaName)
	for _, e := range all {
		e.check = e.bodyCheck(registry)
	}
	return all, nil
}

// bodyCheck is for HTTP's body and the names beside it.
func (e *endpoint) bodyCheck(registry huma.Registry) *bodyCheck {
	whole := &huma.Schema{Type: huma.TypeObject, Properties: make(map[string]*huma.Schema)}
	if e.body != nil {
		of := registry.Schema(e.body, false, "")
		maps.Copy(whole.Properties, of.Properties)
		whole.Required = slices.Clone(of.Required)
	}
	for _, name := range e.about {
		whole.Properties[name] = idSchema()
		whole.Required = append(whole.Required, name)
	}
	return &bodyCheck{schema: whole, registry: registry}
}
