package main

import (
	"net/http"
	"sync/atomic"

	"github.com/headroomhq/headroom/enforcement/api"
)

// apiDoor serves the HTTP API from the moment that it can be answered. Before that, whoever
// asks is told to ask again. The end needs no closing: requests that are inside are waited
// for before anything that they need is closed.
type apiDoor struct {
	inside  atomic.Pointer[api.HTTP]
	outside http.Handler
}

func newAPIDoor() *apiDoor {
	return &apiDoor{outside: api.Unavailable("Headroom is starting; ask again in a moment")}
}

// open has the API serve.
func (d *apiDoor) open(handler *api.HTTP) { d.inside.Store(handler) }

// ServeHTTP is for http.Handler.
func (d *apiDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if handler := d.inside.Load(); handler != nil {
		handler.ServeHTTP(w, r)
		return
	}
	d.outside.ServeHTTP(w, r)
}
