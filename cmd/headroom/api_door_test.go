package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/enforcement/problems"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// routesOf are the routes of a process that has begun to start.
func routesOf(t *testing.T, metrics http.Handler) http.Handler {
	t.Helper()
	return routes(served{
		health: newHealth().handler(), metrics: metrics, stripe: newStripeDoor(Config{}), api: newAPIDoor(),
	}, schematest.Logger(t))
}

func TestWhatIsNotServedIsAProblem(t *testing.T) {
	t.Parallel()
	handler := routesOf(t, http.NotFoundHandler())
	for line, want := range map[string]struct {
		status int
		slug   string
	}{
		"GET /v1/workspaces/ws_1":             {http.StatusServiceUnavailable, "unavailable"},
		"POST /api/core/invalidate-plan/ws_1": {http.StatusServiceUnavailable, "unavailable"},
		"GET /openapi.json":                   {http.StatusServiceUnavailable, "unavailable"},
		"GET /":                               {http.StatusNotFound, "not-found"},
		"GET /v1":                             {http.StatusNotFound, "not-found"},
		"GET /api/core":                       {http.StatusNotFound, "not-found"},
		"GET /api/other":                      {http.StatusNotFound, "not-found"},
		"GET /healthz/":                       {http.StatusNotFound, "not-found"},
		"POST /healthz":                       {http.StatusMethodNotAllowed, "method-not-allowed"},
		"PUT /metrics":                        {http.StatusMethodNotAllowed, "method-not-allowed"},
	} {
		method, path, _ := strings.Cut(line, " ")
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody))
		var p problems.Problem
		if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil || answer.Code != want.status || p.Type != problems.Base+want.slug {
			t.Errorf("%s answers %d %s, want %s", line, answer.Code, answer.Body, want.slug)
		}
		if want.status == http.StatusServiceUnavailable && answer.Header().Get("Retry-After") == "" {
			t.Errorf("%s says nothing of when to ask again", line)
		}
	}
}

func TestTokensThatAreWrongAreRefused(t *testing.T) {
	t.Parallel()
	const secret = "0123456789abcdef"
	for text, fault := range map[string]string{
		"a:" + secret[1:]:              "token 1 (a) has fewer than 16 characters",
		"a:" + secret + ":write":       "token 1 (a) has a scope",
		"a:" + secret + ",a:" + secret: "token 2 has the name of another",
		" a:" + secret:                 "token 1 is empty or has blanks around it",
		secret:                         "token 1 must be name:token",
	} {
		_, err := LoadConfig(environ(map[string]string{"HEADROOM_API_TOKENS": text}), noFiles)
		if err == nil || !strings.Contains(err.Error(), "HEADROOM_API_TOKENS: "+fault) || strings.Contains(err.Error(), secret[1:]) {
			t.Errorf("%q: the fault is %v, want %q and no token", text, err, fault)
		}
	}
}

func TestTokensMayBeInAFileAndArePrintedAsStars(t *testing.T) {
	t.Parallel()
	const secret = "0123456789abcdef"
	config, err := LoadConfig(environ(map[string]string{"HEADROOM_API_TOKENS_FILE": "tokens"}), func(string) ([]byte, error) {
		return []byte("a:" + secret + "\nb:" + secret + "0:admin\n"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := config.tokens()
	if err != nil || len(tokens) != 2 || tokens[1].Name != "b" || !tokens[1].May(api.ScopeAdmin) {
		t.Errorf("the tokens are %v, error %v", tokens, err)
	}
	if text := fmt.Sprintf("%v %+v %#v", config, config, config.APITokens); strings.Contains(text, secret) {
		t.Errorf("printed: %s", text)
	}
}

func TestServeWithoutTokensIsForThisMachineAlone(t *testing.T) {
	t.Parallel()
	for addr, tokens := range map[string]string{"0.0.0.0:0": "", ":0": "", "192.0.2.1:8080": ""} {
		config := Config{HTTPAddr: addr, APITokens: NewSecret(tokens)}
		if err := serve(t.Context(), config, schematest.Logger(t), nil); !errors.Is(err, errOpen) || !strings.Contains(err.Error(), "HEADROOM_API_TOKENS") {
			t.Errorf("on %s: %v", addr, err)
		}
	}
	for addr, tokens := range map[string]string{"127.0.0.1:0": "", "[::1]:0": "", "0.0.0.0:0": "a:0123456789abcdef"} {
		if err := (Config{HTTPAddr: addr, APITokens: NewSecret(tokens)}).checkExposure(); err != nil {
			t.Errorf("on %s with tokens %q: %v", addr, tokens, err)
		}
	}
}
