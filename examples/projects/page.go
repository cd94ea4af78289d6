package projects

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
)

//go:embed page.html
var pageSource string

//go:embed style.css
var style []byte

var pageTemplate = template.Must(template.New("page").Parse(pageSource))

// page shows the workspace, and above it what was refused. Its status is that of the
// problem.
func (a *App) page(w http.ResponseWriter, r *http.Request, p *problem) {
	v, err := a.load(r.Context(), r.PathValue("workspace"))
	if err != nil {
		a.log.ErrorContext(r.Context(), "page not loaded", "error", err)
		shown := problemOf(err)
		http.Error(w, shown.Detail, shown.Status)
		return
	}
	v.Problem = p
	// Into memory first: half a page with the status of a whole one would be a lie.
	var body bytes.Buffer
	if err := pageTemplate.Execute(&body, v); err != nil {
		a.log.ErrorContext(r.Context(), "page not made", "error", err)
		http.Error(w, "something went wrong on our side", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Add("Vary", "Accept")
	if p != nil {
		w.WriteHeader(p.Status)
	}
	_, _ = body.WriteTo(w) // who hung up does not see it
}

func serveStyle(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	_, _ = w.Write(style) // who hung up does not see it
}
