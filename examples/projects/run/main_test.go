package main

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/examples/projects"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

func TestMain(m *testing.M) { schematest.Main(m) }

// firstLine hands on the first thing that is written.
type firstLine chan string

func (f firstLine) Write(p []byte) (int, error) {
	f <- string(p)
	return len(p), nil
}

// started runs the program, and returns its address and what ends it.
func started(t *testing.T, env map[string]string) (address string, end func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	told, ended := make(firstLine, 1), make(chan error, 1)
	go func() { ended <- run(ctx, nil, func(name string) string { return env[name] }, told) }()
	select {
	case line := <-told:
		address, _, _ = strings.Cut(line, "/ ")
	case err := <-ended:
		t.Fatalf("it ended: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("it does not start")
	}
	return address, func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(time.Minute):
			t.Fatal("it does not end")
			return nil
		}
	}
}

func ask(t *testing.T, method, address, form string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Close = true
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(all)
}

func TestItStartsAloneAndEndsCleanly(t *testing.T) {
	t.Parallel()
	address, end := started(t, nil)
	if _, err := url.Parse(address); err != nil {
		t.Fatal(err)
	}
	if status, body := ask(t, http.MethodPost, address+"/w/acme/projects", "name=Apollo"); status != http.StatusCreated {
		t.Errorf("status %d: %s", status, body)
	}
	if status, body := ask(t, http.MethodGet, address+"/w/acme", ""); status != http.StatusOK || !strings.Contains(body, "Apollo") {
		t.Errorf("status %d: %s", status, body)
	}
	if err := end(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if _, err := http.Get(address); err == nil { //nolint:bodyclose,noctx // there is none
		t.Error("it still answers")
	}
}

// headroomWith is a database and a NATS of a Headroom in which the catalog is in force.
func headroomWith(t *testing.T) (env map[string]string, store *subscriptions.Store) {
	t.Helper()
	js, err := jetstream.New(schematest.NATS(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (schemas.Topology{}).Ensure(t.Context(), js); err != nil {
		t.Fatal(err)
	}
	store = subscriptions.NewStore(schematest.Postgres(t), subscriptions.StoreOptions{})
	return map[string]string{"NATS_URL": schematest.NATSURL(t), "POSTGRES_URL": schematest.PostgresURL(t)}, store
}

func TestItUsesARunningHeadroom(t *testing.T) {
	t.Parallel()
	env, store := headroomWith(t)
	catalog, err := projects.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.ApplyCatalog(t.Context(), catalog); err != nil {
		t.Fatal(err)
	}
	address, end := started(t, env)
	for _, name := range []string{"one", "two", "three"} {
		if status, body := ask(t, http.MethodPost, address+"/w/acme/projects", "name="+name); status != http.StatusCreated {
			t.Fatalf("status %d: %s", status, body)
		}
	}
	// Somebody else changes the plan: the counter finds out by itself, before any news.
	_, err = store.Assign(t.Context(), subscriptions.Assignment{WorkspaceID: "acme", PlanKey: "pro"})
	if err != nil {
		t.Fatal(err)
	}
	if status, body := ask(t, http.MethodPost, address+"/w/acme/projects", "name=four"); status != http.StatusCreated {
		t.Errorf("status %d: %s", status, body)
	}
	if err := end(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func TestWhatIsMissingIsTold(t *testing.T) {
	t.Parallel()
	env, _ := headroomWith(t)
	for name, test := range map[string]struct {
		env  map[string]string
		want string
	}{
		"one of the two": {map[string]string{"NATS_URL": "nats://127.0.0.1:1"}, "NATS_URL and POSTGRES_URL go together: both of a running Headroom, or neither"},
		"the catalog":    {env, "no plan has feature projects: add it to the catalog, or apply examples/projects/catalog.yaml"},
	} {
		err := run(t.Context(), nil, func(name string) string { return test.env[name] }, io.Discard)
		if err == nil || err.Error() != test.want {
			t.Errorf("without %s: %v, want %s", name, err, test.want)
		}
	}
}
