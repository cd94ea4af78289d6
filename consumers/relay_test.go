package consumers_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

func TestSeveralRelaysPublishEachRowOnceAndInOrder(t *testing.T) {
	t.Parallel()
	n := newNewsroom(t)
	const workspaces, each = 300, 8
	for range 4 {
		n.relay()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	if err := n.writers(ctx, workspaces, each); err != nil {
		t.Fatal(err)
	}
	n.drained()
	n.expectAllOnce(workspaces * each)
}

func TestABacklogIsPublishedByRelaysThatStartLater(t *testing.T) {
	t.Parallel()
	n := newNewsroom(t)
	_, err := n.pool.Exec(t.Context(), `
		INSERT INTO outbox (id, workspace_id, subject_kind, body)
		SELECT gen_random_uuid(), 'ws' || lpad(w::text, 3, '0'), 'plan.invalidated',
			jsonb_build_object('workspace_id', 'ws' || lpad(w::text, 3, '0'), 'plan_revision', r, 'reason', 'backlog')
		FROM generate_series(1, 20) r, generate_series(1, 150) w ORDER BY r, w`)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		n.relay()
	}
	n.drained()
	n.expectAllOnce(150 * 20)
}

func TestRestartsOfPostgresAndNATSLoseAndRepeatNothing(t *testing.T) {
	t.Parallel()
	server := schematest.PostgresServer(t)
	n := &newsroom{world: newWorld(t), address: server.URL(), pool: openPool(t, server.URL())}
	n.relay()
	n.relay()
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	written := make(chan error, 1)
	const workspaces, each = 60, 30
	go func() { written <- n.writers(ctx, workspaces, each) }()
	for round := 1; round <= 3; round++ {
		published := func() bool {
			count := 0
			err := n.pool.QueryRow(ctx, `SELECT count(*) FROM outbox WHERE published_at IS NOT NULL`).Scan(&count)
			return err == nil && count >= round*workspaces*each/8
		}
		n.eventually(fmt.Sprintf("round %d is under way", round), published)
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Restart(ctx); err != nil {
			t.Fatal(err)
		}
		if err := schematest.NATSServer(t).Restart(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	n.drained()
	n.expectAllOnce(workspaces * each)
}

func TestNewsThatAreNoEventAreADeadLetterAndHoldUpNobody(t *testing.T) {
	t.Parallel()
	n := newNewsroom(t)
	// A later version may know kinds that this one does not.
	if _, err := n.pool.Exec(t.Context(), `ALTER TABLE outbox DROP CONSTRAINT outbox_subject_kind_check`); err != nil {
		t.Fatal(err)
	}
	bad := []struct {
		kind, says string
		data       any
	}{
		{"plan.dreamt", "unknown_type: ", map[string]any{"workspace_id": "ws001"}},
		{subscriptions.NewsInvalidated, "subject_mismatch: ", schemas.PlanInvalidated{WorkspaceID: "ws002", Reason: "test"}},
		{subscriptions.NewsRenewed, "invalid_field: ", map[string]any{"workspace_id": "ws001"}},
		{subscriptions.NewsInvalidated, "syntax: ", []int{1}},
		{subscriptions.NewsInvalidated, "invalid_field: ", schemas.PlanInvalidated{WorkspaceID: "ws001", Reason: strings.Repeat("x", 70_000)}},
	}
	for _, b := range bad {
		if err := insert(t.Context(), n.pool, "ws001", b.kind, b.data); err != nil {
			t.Fatal(err)
		}
	}
	n.mustWrite("ws001", 2)
	n.mustWrite("ws002", 2)
	n.relay()
	n.drained()
	for _, kind := range []schemas.StreamKind{schemas.StreamPlans, schemas.StreamSubscriptions} {
		if count := n.count(kind); count != 2 {
			t.Errorf("%d messages in %s, want 2", count, kind)
		}
	}
	letters := n.stored(schemas.StreamDeadLetters)
	if len(letters) != len(bad) {
		t.Fatalf("%d dead letters, want %d", len(letters), len(bad))
	}
	for i, l := range letters {
		if l.Subject != "headroom.deadletters.subscriptions.outbox" || !strings.HasPrefix(l.Header.Get("Headroom-Reason"), bad[i].says) {
			t.Errorf("dead letter %d on %s has the reason %q, want %q", i, l.Subject, l.Header.Get("Headroom-Reason"), bad[i].says)
		}
	}
	if diff := cmp.Diff(`{"workspace_id": "ws001"}`, string(letters[0].Data)); diff != "" {
		t.Errorf("body of the first dead letter (-want +got):\n%s", diff)
	}
}

func TestNewsThatCannotBePublishedYetHoldUpOnlyTheirWorkspace(t *testing.T) {
	t.Parallel()
	n := newNewsroom(t)
	// More than one pass takes of what no stream takes, before the first of what one does.
	const stuck = 140
	for i := range stuck {
		ws := fmt.Sprintf("ws%03d", i)
		for _, kind := range []string{subscriptions.NewsRenewed, subscriptions.NewsInvalidated} {
			if err := write(t.Context(), n.pool, ws, kind); err != nil {
				t.Fatal(err)
			}
		}
	}
	n.mustWrite("ws999", 1)
	if err := n.js.DeleteStream(t.Context(), n.topology.Stream(schemas.StreamSubscriptions)); err != nil {
		t.Fatal(err)
	}
	n.relay()
	n.await(schemas.StreamPlans, 1)
	n.eventually("it is marked", func() bool { return n.waiting() == 2*stuck })
	n.mustWrite("ws998", 1)
	n.eventually("news of the meantime are published", func() bool { return n.waiting() == 2*stuck })
	if _, err := n.topology.Ensure(t.Context(), n.js); err != nil {
		t.Fatal(err)
	}
	n.drained()
	n.expectAllOnce(2*stuck + 2)
}
