package api

import (
	"fmt"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/headroomhq/headroom/enforcement/problems"
)

// answerUnrouted answers what no route of mux is for, and reports whether it did.
func answerUnrouted(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) bool {
	if !written(r.URL.Path) {
		problems.New(problems.NotFound, "no path is written with //, /./ or /../").Occurred().Write(w, time.Time{})
		return true
	}
	// To a path that lacks only the slash of a pattern, the mux would send a redirect.
	_, pattern := mux.Handler(r)
	if pattern != "" && !strings.HasSuffix(pattern, " "+r.URL.Path+"/") && pattern != r.URL.Path+"/" {
		return false
	}
	allowed := methodsOf(mux, r)
	if allowed == "" {
		problems.New(problems.NotFound, "nothing is served at this path").Occurred().Write(w, time.Time{})
		return true
	}
	w.Header().Set("Allow", allowed)
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return true
	}
	problems.New(problems.Method, fmt.Sprintf("%s is not served at this path; %s is", r.Method, allowed)).Occurred().Write(w, time.Time{})
	return true
}

// written reports whether the mux would take the path as it stands.
func written(p string) bool {
	clean := path.Clean(p)
	return strings.HasPrefix(p, "/") && (p == clean || p == clean+"/")
}

// methodsOf asks the mux for the methods of the path: it says so where it refuses one.
func methodsOf(mux *http.ServeMux, r *http.Request) string {
	refusal, _ := mux.Handler(r)
	heard := &listener{header: make(http.Header)}
	refusal.ServeHTTP(heard, r)
	if heard.status != http.StatusMethodNotAllowed {
		return ""
	}
	methods := heard.header.Get("Allow")
	if !strings.Contains(methods, http.MethodOptions) {
		methods += ", " + http.MethodOptions
	}
	return methods
}

// listener takes an answer that goes to nobody.
type listener struct {
	header http.Header
	status int
}

// Header is for http.ResponseWriter.
func (l *listener) Header() http.Header { return l.header }

// Write is for http.ResponseWriter.
func (l *listener) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader is for http.ResponseWriter.
func (l *listener) WriteHeader(status int) { l.status = status }
