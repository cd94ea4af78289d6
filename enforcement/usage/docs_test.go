package usage_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

// The snippets of docs/usage.md are parts of these functions, which the test below runs.

func wire(appPool, planPool *pgxpool.Pool) *usage.Counters {
	store := subscriptions.NewStore(planPool, subscriptions.StoreOptions{})
	counters := usage.New(usage.Options{
		Pool:  appPool,
		Plans: subscriptions.NewCache(store.PlanInfo, subscriptions.CacheOptions{}),
	})
	return counters
}

func createProject(ctx context.Context, pool *pgxpool.Pool, counters *usage.Counters, workspace, id string) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		_, err := counters.Consume(ctx, tx, usage.Change{
			WorkspaceID: workspace, Feature: "projects", Quantity: 1, ResourceID: id,
		})
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO app_projects (id, workspace_id) VALUES ($1, $2)`, id, workspace)
		return err
	})
}

func renameProject(ctx context.Context, pool *pgxpool.Pool, counters *usage.Counters, change [3]string) error {
	workspace, id, name := change[0], change[1], change[2]
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := counters.CheckResource(ctx, tx, workspace, "projects", id); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE app_projects SET name = $2 WHERE id = $1`, id, name)
		return err
	})
}

func deleteProject(ctx context.Context, pool *pgxpool.Pool, counters *usage.Counters, workspace, id string) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `DELETE FROM app_projects WHERE id = $1 AND workspace_id = $2`, id, workspace)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		_, err = counters.Release(ctx, tx, usage.Change{
			WorkspaceID: workspace, Feature: "projects", Quantity: 1, ResourceID: id,
		})
		return err
	})
}

func sendMail(ctx context.Context, counters *usage.Counters, workspace, messageID string) error {
	once := usage.Once{Scope: "mailer", Key: messageID}
	balance, err := counters.ConsumeOnce(ctx, once, usage.Change{WorkspaceID: workspace, Feature: "emails", Quantity: 1})
	var exceeded *usage.QuotaExceeded
	if errors.As(err, &exceeded) {
		return errors.New("no e-mails left until " + exceeded.ResetsAt.Format(time.RFC3339))
	}
	if err != nil {
		return err
	}
	_ = balance.Remaining() // nil without a limit
	return nil
}

func importFiles(ctx context.Context, pool *pgxpool.Pool, counters *usage.Counters, sizes map[string]int64) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		changes := []usage.Change{{WorkspaceID: "w", Feature: "imports", Quantity: 1}}
		for id, bytes := range sizes {
			changes = append(changes, usage.Change{WorkspaceID: "w", Feature: "storage_bytes", Quantity: bytes, ResourceID: id})
		}
		_, err := counters.ConsumeAll(ctx, tx, changes)
		return err
	})
}

func keepProjects(ctx context.Context, counters *usage.Counters) ([]string, error) {
	if err := counters.Keep(ctx, "w", "projects", []string{"p3"}); err != nil {
		return nil, err
	}
	page, err := counters.Resources(ctx, usage.ResourceQuery{WorkspaceID: "w", Feature: "projects"})
	if err != nil {
		return nil, err
	}
	var reasons []string
	for _, r := range page.Resources {
		if r.Locked {
			reasons = append(reasons, page.Reason(r).Error())
		}
	}
	return reasons, nil
}

func TestWhatTheDocumentShows(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), schematest.Postgres(t)
	h := openOn(t, pool, pool, plan("free", features{"projects": 1}),
		plan("team", features{"projects": 3, "emails": 1, "imports": 1, "storage_bytes": 1}))
	counters := wire(pool, schematest.Pool(t, schematest.PostgresURL(t), 2))
	if _, err := pool.Exec(ctx, `create table app_projects (id text primary key, workspace_id text, name text)`); err != nil {
		t.Fatal(err)
	}
	h.assign(t, "w", "team")
	for _, id := range []string{"p1", "p2", "p3"} {
		if err := createProject(ctx, pool, counters, "w", id); err != nil {
			t.Fatal(err)
		}
	}
	if err := createProject(ctx, pool, counters, "w", "p4"); !errors.As(err, new(*usage.QuotaExceeded)) {
		t.Errorf("the fourth project: %v", err)
	}
	if err := sendMail(ctx, counters, "w", "m1"); err != nil {
		t.Error(err)
	}
	if err := importFiles(ctx, pool, counters, map[string]int64{"f1": 1 << 19, "f2": 1 << 19}); err != nil {
		t.Error(err)
	}
	h.assign(t, "w", "free")
	if err := renameProject(ctx, pool, counters, [3]string{"w", "p3", "new"}); !errors.As(err, new(*usage.ResourceLocked)) {
		t.Errorf("a change of a locked project: %v", err)
	}
	if reasons, err := keepProjects(ctx, counters); err != nil || len(reasons) != 2 {
		t.Errorf("%v, %v, want the reasons of two locked ones", reasons, err)
	}
	if err := renameProject(ctx, pool, counters, [3]string{"w", "p3", "new"}); err != nil {
		t.Errorf("a change of a chosen project: %v", err)
	}
	if err := deleteProject(ctx, pool, counters, "w", "p1"); err != nil {
		t.Error(err)
	}
	h.wantUsed(t, "projects", 2)
}

func TestTheDocumentsSnippetsAreTheOnesThatRun(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../docs/usage.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("docs_test.go")
	if err != nil {
		t.Fatal(err)
	}
	code := flat(string(source))
	snippets := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(document), -1)
	if len(snippets) < 5 {
		t.Errorf("%d snippets were found", len(snippets))
	}
	for _, s := range snippets {
		if !strings.Contains(code, flat(s[1])) {
			t.Errorf("not in docs_test.go:\n%s", s[1])
		}
	}
}

// flat leaves out how a text is indented.
func flat(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}
