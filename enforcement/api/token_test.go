package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/enforcement/usage"
)

func TestTokensAreRead(t *testing.T) {
	t.Parallel()
	const secret, other = "0123456789abcdef", "fedcba9876543210"
	type known struct {
		Name   string
		Scopes []api.Scope
	}
	both := []api.Scope{api.ScopeRead, api.ScopeExecute}
	for text, want := range map[string][]known{
		"":            nil,
		"a:" + secret: {{"a", both}},
		"a:" + secret + ":read,b:" + other + ":read+admin": {{"a", []api.Scope{api.ScopeRead}}, {"b", []api.Scope{api.ScopeRead, api.ScopeAdmin}}},
		"a:" + secret + "\nb:" + other + "\n":              {{"a", both}, {"b", both}},
		"a:" + secret + "\r\nb:" + other:                   {{"a", both}, {"b", both}},
		"a:-._~+/=" + secret:                               {{"a", both}},
	} {
		tokens, err := api.ParseTokens(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		var got []known
		for _, token := range tokens {
			got = append(got, known{token.Name, token.Scopes})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestWrongTokensAreRefusedAndNotShown(t *testing.T) {
	t.Parallel()
	const secret, other = "0123456789abcdef", "fedcba9876543210"
	for text, says := range map[string]string{
		"a":                            "token 1 must be name:token",
		"a:" + secret + ":read:":       "token 1 must be name:token",
		":" + secret:                   "token 1 has no name",
		"a b:" + secret:                "token 1 has no name",
		"a:":                           "token 1 (a) has fewer than 16 characters",
		"a:" + secret[1:]:              "token 1 (a) has fewer than 16 characters",
		"a:" + secret + "!":            "token 1 (a) may hold letters",
		"a:" + secret + ",a:" + other:  "token 2 has the name of another, a",
		"a:" + secret + ",b:" + secret: "token 2 (b) is the same as that of a",
		"a:" + secret + ", b:" + other: "token 2 is empty or has blanks",
		" a:" + secret:                 "token 1 is empty or has blanks",
		"a:" + secret + ":":            "token 1 (a) has a scope that is none of read, execute, admin",
		"a:" + secret + ":write":       "token 1 (a) has a scope",
		"a:" + secret + ":read+":       "token 1 (a) has a scope",
		"a:" + secret + ":Read":        "token 1 (a) has a scope",
		"a:" + secret + ",,b:" + other: "token 2 is empty",
		"a:" + secret + ",":            "token 2 is empty",
		",":                            "token 1 is empty",
	} {
		_, err := api.ParseTokens(text)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v, want %q", text, err, says)
			continue
		}
		if strings.Contains(err.Error(), secret[1:]) || strings.Contains(err.Error(), other) {
			t.Errorf("%q: the error shows a token: %v", text, err)
		}
	}
}

func TestATokenIsNeverPrinted(t *testing.T) {
	t.Parallel()
	const secret = "0123456789abcdef"
	tokens, err := api.ParseTokens("a:" + secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		if text := fmt.Sprintf(verb, tokens); strings.Contains(text, secret) {
			t.Errorf("%s prints %s", verb, text)
		}
	}
}

func TestRequireLetsThoseWithTheScopeThrough(t *testing.T) {
	t.Parallel()
	tokens, err := api.ParseTokens("reader:" + readToken + ":read,engine:" + executeToken + ":execute")
	if err != nil {
		t.Fatal(err)
	}
	h := tokens.Require(api.ScopeRead, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	for token, want := range map[string]int{readToken: http.StatusTeapot, executeToken: http.StatusForbidden, "-": http.StatusUnauthorized} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request{method: "GET", path: "/metrics", token: token}.make(t))
		if w.Code != want {
			t.Errorf("%s: status %d, want %d", token, w.Code, want)
		}
	}
}

func TestWithoutTokensAPageOfAnotherSiteChangesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		header map[string]string
		status int
	}{
		"no browser":           {nil, http.StatusOK},
		"the same origin":      {map[string]string{"Sec-Fetch-Site": "same-origin"}, http.StatusOK},
		"another site":         {map[string]string{"Sec-Fetch-Site": "cross-site"}, http.StatusUnauthorized},
		"another port":         {map[string]string{"Sec-Fetch-Site": "same-site"}, http.StatusUnauthorized},
		"an old browser":       {map[string]string{"Origin": "https://elsewhere.example"}, http.StatusUnauthorized},
		"an origin that hides": {map[string]string{"Origin": "null"}, http.StatusUnauthorized},
	} {
		counted := 0
		a := willing()
		change := a.change
		a.change = func(once usage.Once, c usage.Change) (usage.Balance, error) {
			counted++
			return change(once, c)
		}
		q := request{method: "POST", path: "/v1/workspaces/ws_1/features/automations/consume", token: "-", header: c.header}
		w := q.ask(t, newDoor(t, a, func(o *api.Options) { o.Tokens = nil }))
		if w.Code != c.status || (counted == 1) != (c.status == http.StatusOK) {
			t.Errorf("%s: status %d, want %d; %d changes", name, w.Code, c.status, counted)
		}
	}
}
