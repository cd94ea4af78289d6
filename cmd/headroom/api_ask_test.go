package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headroomhq/headroom/enforcement/problems"
)

// The tokens of an installation that asks for some.
const (
	engineToken = "engine-0123456789"
	opsToken    = "ops-0123456789abc"
)

// guarded is the same installation with an API that asks for a token.
func (i *installation) guarded() *installation {
	return i.with(map[string]string{"HEADROOM_API_TOKENS": "engine:" + engineToken + ",ops:" + opsToken + ":admin"})
}

// caller asks the API of a process, over connections that it keeps until the test ends.
// It is safe for concurrent use.
type caller struct {
	t           testing.TB
	addr, token string
	client      *http.Client
	// trace is sent as traceparent, unless it is empty.
	trace string
}

func newCaller(t testing.TB, addr, token string) *caller {
	t.Helper()
	c := &caller{t: t, addr: addr, token: token, client: &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 32}}}
	t.Cleanup(c.client.CloseIdleConnections)
	return c
}

// apiAnswer is what the API answered.
type apiAnswer struct {
	status int
	header http.Header
	text   []byte
}

// try asks, and returns what a caller sees who outlives the process.
func (c *caller) try(method, path, body string) (apiAnswer, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.t.Context()), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+c.addr+path, strings.NewReader(body))
	if err != nil {
		return apiAnswer{}, err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("Content-Type", "application/json")
	if c.trace != "" {
		r.Header.Set("Traceparent", c.trace)
	}
	response, err := c.client.Do(r)
	if err != nil {
		return apiAnswer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return apiAnswer{status: response.StatusCode, header: response.Header, text: text}, err
}

// must asks for an answer of the status, and reads it.
func (c *caller) must(status int, into any, method, path, body string) apiAnswer {
	c.t.Helper()
	a, err := c.try(method, path, body)
	if err != nil {
		c.t.Fatal(err)
	}
	if a.status != status {
		c.t.Fatalf("%s %s %s answers %d %s, want %d", method, path, body, a.status, a.text, status)
	}
	if into != nil {
		if err := json.Unmarshal(a.text, into); err != nil {
			c.t.Fatalf("%s %s: %v in %s", method, path, err, a.text)
		}
	}
	return a
}

// refused asks for a problem of that kind.
func (c *caller) refused(slug, method, path, body string) (problems.Problem, http.Header) {
	c.t.Helper()
	a, err := c.try(method, path, body)
	if err != nil {
		c.t.Fatal(err)
	}
	var p problems.Problem
	if err := json.Unmarshal(a.text, &p); err != nil || p.Type != problems.Base+slug || a.status != p.Status {
		c.t.Fatalf("%s %s %s answers %d %s, want %s", method, path, body, a.status, a.text, slug)
	}
	return p, a.header
}

// eventually looks again and again until something is so.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(patience)
	for !is() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("it did not come about that %s", what)
		}
	}
}

// consumption is the body that takes units for a resource.
func consumption(resource string, quantity int, created time.Time) string {
	return fmt.Sprintf(`{"resource_id": %q, "quantity": %d, "created_at": %q}`, resource, quantity, created.Format(time.RFC3339))
}
