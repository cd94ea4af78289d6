package api_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/enforcement/api"
)

// documented are the permissions that docs/api-nats.md gives: who asks, and Headroom.
func documented(t testing.TB) (asker, headroom string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/api-nats.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile(`(?s)permissions: \{.*?\n\}`).FindAllString(string(text), -1)
	if len(blocks) != 2 {
		t.Fatalf("the page has %d blocks of permissions, want those of who asks and of Headroom", len(blocks))
	}
	return blocks[0], blocks[1]
}

// guarded is a server whose users may do what the page says and no more. The asker of
// account OTHER has the service imported.
func guarded(t testing.TB) *server.Server {
	t.Helper()
	asker, headroom := documented(t)
	file := filepath.Join(t.TempDir(), "nats.conf")
	text := fmt.Sprintf(`
listen: "127.0.0.1:-1"
accounts: {
  HOME: {
    users: [ {user: operator, password: p}, {user: headroom, password: p, %s}, {user: asker, password: p, %s} ]
    exports: [ {service: "headroom.api.>"} ]
  }
  OTHER: {
    users: [ {user: other, password: p, %s} ]
    imports: [ {service: {account: HOME, subject: "headroom.api.>"}} ]
  }
}`, headroom, asker, asker)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	options, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	options.NoLog, options.NoSigs = true, true
	s, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server takes no connections")
	}
	return s
}

// as is a connection of that user; what the server forbids it fails the test.
func as(t testing.TB, s *server.Server, user string) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(s.ClientURL(), nats.UserInfo(user, "p"), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		t.Errorf("user %s: %v", user, err)
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func TestTheDocumentedPermissionsAreEnough(t *testing.T) {
	t.Parallel()
	s := guarded(t)
	h := newHouse(t, limits(nil, nil))
	nc := as(t, s, "headroom")
	h.serve(func(o *api.MicroOptions) { o.NATS = nc; h.nats = as(t, s, "operator") })
	for _, user := range []string{"asker", "other"} {
		nc := as(t, s, user)
		for _, body := range []string{`{"workspace_id":"ws"}`, `{}`} {
			if _, err := nc.Request("headroom.api.usage", []byte(body), 2*time.Second); err != nil {
				t.Errorf("user %s asks %s: %v", user, body, err)
			}
		}
	}
}
