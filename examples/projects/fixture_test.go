package projects_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/examples/projects"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

const problemBase = "https://github.com/headroomhq/headroom/blob/main/docs/problems.md#"

// site is the application over a database of the test's own.
type site struct {
	url  string
	pool *pgxpool.Pool
}

func open(t *testing.T) *site {
	t.Helper()
	pool := schematest.Postgres(t)
	reading, err := pgxpool.New(t.Context(), schematest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reading.Close)
	store := subscriptions.NewStore(reading, subscriptions.StoreOptions{})
	catalog, err := projects.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.ApplyCatalog(t.Context(), catalog); err != nil {
		t.Fatal(err)
	}
	app, err := projects.New(t.Context(), projects.Options{
		Pool: pool, Store: store, Log: schematest.Logger(t),
		Plans: subscriptions.NewCache(store.PlanInfo, subscriptions.CacheOptions{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(app.Handler())
	t.Cleanup(server.Close)
	return &site{url: server.URL, pool: pool}
}

// reply is an answer of the application.
type reply struct {
	status      int
	contentType string
	body        string
}

// json are the members of a body.
func (r reply) json(t *testing.T) map[string]any {
	t.Helper()
	members := make(map[string]any)
	if err := json.Unmarshal([]byte(r.body), &members); err != nil {
		t.Fatalf("status %d, body %q: %v", r.status, r.body, err)
	}
	return members
}

func (r reply) id(t *testing.T) string {
	t.Helper()
	id, _ := r.json(t)["id"].(string)
	if id == "" {
		t.Fatalf("status %d without an id: %s", r.status, r.body)
	}
	return id
}

// send asks as the headers say; redirects are followed, as a browser does.
func (s *site) send(t *testing.T, method, path string, form url.Values, header http.Header) reply {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if header != nil {
		request.Header = header.Clone()
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if location := response.Header.Get("Location"); location != "" {
		return s.send(t, http.MethodGet, location, nil, header)
	}
	return reply{response.StatusCode, response.Header.Get("Content-Type"), string(body)}
}

// post is a program's, press a browser's; fields are names and values in turn.
func (s *site) post(t *testing.T, path string, fields ...string) reply {
	t.Helper()
	return s.send(t, http.MethodPost, path, formOf(fields), nil)
}

func (s *site) press(t *testing.T, path string, fields ...string) reply {
	t.Helper()
	return s.send(t, http.MethodPost, path, formOf(fields), http.Header{
		"Accept": {"text/html,application/xhtml+xml"}, "Sec-Fetch-Site": {"same-origin"},
	})
}

func formOf(fields []string) url.Values {
	form := make(url.Values)
	for i := 0; i+1 < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	return form
}

// must fails the test unless the answer has the status.
func (r reply) must(t *testing.T, status int) reply {
	t.Helper()
	if r.status != status {
		t.Fatalf("status %d, want %d: %s", r.status, status, r.body)
	}
	return r
}

var space = regexp.MustCompile(`\s+`)

// page is the page's text without its tags, and its source.
func (s *site) page(t *testing.T, workspace string) (text, source string) {
	t.Helper()
	source = s.send(t, http.MethodGet, "/w/"+workspace, nil, nil).must(t, http.StatusOK).body
	return textOf(source), source
}

var tag = regexp.MustCompile(`<[^>]*>`)

func textOf(source string) string {
	return space.ReplaceAllString(tag.ReplaceAllString(source, " "), " ")
}

// lockedNames are the projects that the page shows as locked, in its order.
func (s *site) lockedNames(t *testing.T, workspace string) []string {
	t.Helper()
	_, source := s.page(t, workspace)
	names := []string{}
	for _, row := range regexp.MustCompile(`(?s)<li class="locked">.*?<span class="name">(.*?)</span>`).FindAllStringSubmatch(source, -1) {
		names = append(names, row[1])
	}
	return names
}

// count is what a query of one number says.
func (s *site) count(t *testing.T, query string, args ...any) (n int64) {
	t.Helper()
	if err := s.pool.QueryRow(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
