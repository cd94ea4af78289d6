package main

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// pruned answers calls in turn, and then that nothing is left.
type pruned struct {
	answers []func() (int64, error)
	calls   []time.Duration // since the start, of each call
	begun   time.Time
	t       *testing.T
}

func (p *pruned) Prune(_ context.Context, before time.Time, limit int) (int64, error) {
	if !before.Equal(time.Now().Add(-usage.KeepRequests)) || limit != forgetBatch {
		p.t.Errorf("asked to forget %d before %s", limit, before)
	}
	p.calls = append(p.calls, time.Since(p.begun))
	if len(p.answers) == 0 {
		return 0, nil
	}
	next := p.answers[0]
	p.answers = p.answers[1:]
	return next()
}

func TestOldRequestsAreForgottenAtOnceAndEachHour(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		full := func() (int64, error) { return forgetBatch, nil }
		failed := func() (int64, error) { return 0, errors.New("postgres is away") }
		p := &pruned{t: t, begun: time.Now(), answers: []func() (int64, error){full, full, failed}}
		log := newLines()
		ctx, cancel := context.WithTimeout(t.Context(), 2*forgetEvery+time.Minute)
		defer cancel()
		forgetRequests(ctx, p, newLogger(log, Config{LogFormat: "json"}))
		if want := []time.Duration{0, 0, 0, forgetEvery, 2 * forgetEvery}; !slices.Equal(p.calls, want) {
			t.Errorf("asked after %v, want %v", p.calls, want)
		}
		if n := strings.Count(log.String(), "could not be forgotten"); n != 1 || !strings.Contains(log.String(), "postgres is away") {
			t.Errorf("the log has %d lines of one failure:\n%s", n, log)
		}
	})
}

func TestServeForgetsOldRequests(t *testing.T) {
	t.Parallel()
	pool := schematest.Postgres(t)
	_, err := pool.Exec(t.Context(), `
		INSERT INTO usage_requests (scope, workspace_id, key, fingerprint, answer, created_at)
		SELECT 'engine', 'ws', 'old-' || n, ''::bytea, '{}'::jsonb, now() - interval '25 hours' FROM generate_series(1, 2500) AS n
		UNION ALL SELECT 'engine', 'ws', 'young', '', '{}', now() - interval '23 hours'`)
	if err != nil {
		t.Fatal(err)
	}
	i := newInstallation(t)
	i.must("plans", "apply", demoCatalog)
	i.serve().awaitStatus(http.StatusOK)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(patience)
	for {
		rows, err := pool.Query(t.Context(), `SELECT key FROM usage_requests LIMIT 2`)
		if err != nil {
			t.Fatal(err)
		}
		keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if slices.Equal(keys, []string{"young"}) {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("still there: %v", keys)
		}
	}
}
