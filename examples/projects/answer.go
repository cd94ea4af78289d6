package projects

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
)

const (
	// largestBody is far more than any form here has.
	largestBody = 64 << 10
	// patience bounds a request, waits for a lock included.
	patience = 10 * time.Second
)

// action does what a form asks for. It is given a form that was read and a workspace that
// is one.
type action func(ctx context.Context, workspace string, r *http.Request) (done, error)

// done is what a program is told of a form that was carried out.
type done struct {
	Status int    `json:"-"`
	ID     string `json:"id,omitempty"`
	// Used, Limit and Remaining are the balance after it, where something was counted. A
	// limit that is null has no bound.
	*balance
}

type balance struct {
	Used      int64  `json:"used"`
	Limit     *int64 `json:"limit"`
	Unlimited bool   `json:"unlimited"`
	Remaining *int64 `json:"remaining"`
}

func created(id string, b usage.Balance) done {
	return done{Status: http.StatusCreated, ID: id, balance: &balance{
		Used: b.Used, Limit: b.Limit.Pointer(), Unlimited: b.Limit.IsUnlimited(), Remaining: b.Remaining(),
	}}
}

// bounded limits what any request may send and take, and what a page may load.
func bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		r.Body = http.MaxBytesReader(w, r.Body, largestBody)
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// handle answers a form: a browser is sent back to the page, a program gets JSON.
func (a *App) handle(do action) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		workspace := r.PathValue("workspace")
		if !schemas.ValidID(workspace) {
			http.NotFound(w, r)
			return
		}
		result, err := do, r.ParseForm()
		var told done
		if err == nil {
			told, err = result(r.Context(), workspace, r)
		}
		switch {
		case err != nil:
			a.refuse(w, r, err)
		case wantsPage(r):
			http.Redirect(w, r, (&url.URL{Path: "/w/" + workspace}).String(), http.StatusSeeOther)
		default:
			a.send(w, message{"application/json", max(told.Status, http.StatusOK), told})
		}
	})
}

// refuse says why not, and what would help: as problem details, or as a prompt on the page.
func (a *App) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError {
		a.log.ErrorContext(r.Context(), "request failed", "path", r.URL.Path, "error", err)
	}
	if p.refusal != nil {
		// Without the offer the refusal is still true.
		p.Offer, err = a.enough(r.Context(), p.refusal.plan, p.Limit, p.refusal.needed)
		if err != nil {
			a.log.WarnContext(r.Context(), "no plan to offer", "error", err)
		}
		p.UpgradeHint = p.hint()
	}
	if !wantsPage(r) {
		w.Header().Add("Vary", "Accept")
		p.Write(w, time.Now())
		return
	}
	a.page(w, r, &p)
}

// wantsPage tells a browser from a program.
func wantsPage(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

type message struct {
	contentType string
	status      int
	body        any
}

func (a *App) send(w http.ResponseWriter, m message) {
	w.Header().Set("Content-Type", m.contentType)
	w.Header().Add("Vary", "Accept")
	w.WriteHeader(m.status)
	if err := json.NewEncoder(w).Encode(m.body); err != nil {
		a.log.Debug("answer not written", slog.Any("error", err))
	}
}
