package api_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headroomhq/headroom/enforcement/api"
)

func recorded(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestAPathThatIsNotThereIsAProblem(t *testing.T) {
	t.Parallel()
	door := newDoor(t, willing())
	for _, path := range []string{
		"/", "/v1", "/v1/", "/v1/workspaces", "/v1/workspaces/", "/v1/workspaces/ws_1/", "/v1//workspaces/ws_1", "/v1/workspaces/../workspaces/ws_1",
		"/v1/workspaces/%2e%2e/ws_1", "/V1/workspaces/ws_1", "/v1/workspaces/ws_1/executions/ex_1/finish", "/openapi.yaml", "/docs",
	} {
		for _, method := range []string{"GET", "POST", "OPTIONS"} {
			if p := told(t, request{method: method, path: path}.ask(t, door)); slugOf(p) != "not-found" {
				t.Errorf("%s %s: got %v", method, path, p)
			}
		}
	}
}

func TestAMethodThatIsNotThereIsAProblem(t *testing.T) {
	t.Parallel()
	door := newDoor(t, willing())
	for _, g := range good {
		w := request{method: "TRACE", path: g.path}.ask(t, door)
		if slugOf(told(t, w)) != "method-not-allowed" || !strings.Contains(w.Header().Get("Allow"), g.method) {
			t.Errorf("TRACE %s: status %d, Allow %q", g.path, w.Code, w.Header().Get("Allow"))
		}
		w = request{method: "OPTIONS", path: g.path, token: "-"}.ask(t, door)
		if w.Code != http.StatusNoContent || !strings.Contains(w.Header().Get("Allow"), g.method) || w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("OPTIONS %s: status %d, %v", g.path, w.Code, w.Header())
		}
	}
}

func TestHEADIsGETWithoutABody(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(newDoor(t, willing()))
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodHead, server.URL+"/v1/workspaces/ws_1", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+readToken)
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "application/json" {
		t.Errorf("status %d, %v", answer.StatusCode, answer.Header)
	}
}

func TestAPanicIsAProblemAndInTheLog(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	a := willing()
	a.invalidate = func(context.Context, string, string) (int64, error) { panic("the reason is for the log") }
	door := newDoor(t, a, func(o *api.Options) { o.Log = slog.New(slog.NewJSONHandler(&lines, nil)) })
	w := good["invalidate"].ask(t, door)
	p := told(t, w)
	instance, _ := p["instance"].(string)
	if slugOf(p) != "internal-error" || strings.Contains(w.Body.String(), "reason") {
		t.Errorf("got %s", w.Body)
	}
	if instance == "" || !strings.Contains(lines.String(), instance) || !strings.Contains(lines.String(), "the reason is for the log") {
		t.Errorf("the log says %s", lines.String())
	}
}

func TestAnAbortedAnswerStaysOne(t *testing.T) {
	t.Parallel()
	a := willing()
	a.invalidate = func(context.Context, string, string) (int64, error) { panic(http.ErrAbortHandler) }
	defer func() {
		if cause := recover(); cause != http.ErrAbortHandler { //nolint:errorlint // it must be the very value
			t.Errorf("panicked with %v", cause)
		}
	}()
	good["invalidate"].ask(t, newDoor(t, a))
}

func TestWithoutTokensEverybodyMay(t *testing.T) {
	t.Parallel()
	door := newDoor(t, willing(), func(o *api.Options) { o.Tokens = nil })
	for name, g := range good {
		q := g.request
		q.token = "-"
		if w := q.ask(t, door); w.Code != g.status {
			t.Errorf("%s: status %d; body %s", name, w.Code, w.Body)
		}
	}
}

func TestTheDocumentIsOpen(t *testing.T) {
	t.Parallel()
	for path, write := range map[string]func() ([]byte, error){
		"/openapi.json": api.Document, "/openapi-3.0.json": api.DocumentForClients,
	} {
		want, err := write()
		if err != nil {
			t.Fatal(err)
		}
		w := request{method: "GET", path: path, token: "-"}.ask(t, newDoor(t, willing()))
		if w.Code != http.StatusOK || !bytes.Equal(w.Body.Bytes(), want) {
			t.Errorf("%s: status %d, %d bytes", path, w.Code, w.Body.Len())
		}
	}
}
