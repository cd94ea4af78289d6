package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
)

func deadLettersPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/deadletters.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

func TestTheDeadLettersPageSaysWhatToDoAboutEveryReason(t *testing.T) {
	t.Parallel()
	page := deadLettersPage(t)
	want := []string{
		"`gave up after N attempts", "`refused by the ledger", "`subscription … does not exist", "`subscription … does not belong",
		"`headroom_deadletters`", "`headroom_deadletters_oldest_seconds`",
	}
	for _, reason := range schemas.Reasons {
		want = append(want, "`"+string(reason)+"`")
	}
	for _, name := range want {
		if !strings.Contains(page, name) {
			t.Errorf("docs/deadletters.md does not name %s", name)
		}
	}
}

// documentedPermissions is the subjects that the page lists for a command.
func documentedPermissions(t *testing.T, command string) []string {
	t.Helper()
	row := rowWith(t, deadLettersPage(t), "| "+command+" |")
	var subjects []string
	for _, found := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row, -1) {
		subjects = append(subjects, found[1])
	}
	return subjects
}

// mailroomFor has a server whose user "operator" may publish on the subjects alone.
func mailroomFor(t *testing.T, subjects []string) *mailroom {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true,
		Users: []*server.User{{Username: "headroom", Password: "p"}, {Username: "operator", Password: "p", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: subjects}, Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server did not start")
	}
	nc, err := nats.Connect(s.ClientURL(), nats.UserInfo("headroom", "p"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (schemas.Topology{}).Ensure(t.Context(), js); err != nil {
		t.Fatal(err)
	}
	url := strings.Replace(s.ClientURL(), "nats://", "nats://operator:p@", 1)
	m := &mailroom{js: js, installation: &installation{t: t, settings: map[string]string{"HEADROOM_NATS_URL": url}}}
	m.putMany(3, func(int) string { return "requested" })
	return m
}

func TestTheDocumentedPermissionsOfTheLettersAreEnough(t *testing.T) {
	t.Parallel()
	look := documentedPermissions(t, "list, show")
	drop := append(slices.Clone(look), documentedPermissions(t, "drop")...)
	replay := append(slices.Clone(drop), documentedPermissions(t, "replay")...)
	for name, test := range map[string]struct {
		subjects []string
		args     []string
		left     int
	}{
		"list":     {look, []string{"list", "--kind", "requested"}, 3},
		"show":     {look, []string{"show", "2"}, 3},
		"drop":     {drop, []string{"drop", "2"}, 2},
		"drop all": {drop, []string{"drop", "--all", "--yes"}, 0},
		"replay":   {replay, []string{"replay", "--all", "--yes"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := mailroomFor(t, test.subjects)
			m.must(append([]string{"deadletters"}, test.args...)...)
			if n := m.count(schemas.StreamDeadLetters); n != test.left {
				t.Errorf("%d letters are left, want %d", n, test.left)
			}
		})
	}
}
