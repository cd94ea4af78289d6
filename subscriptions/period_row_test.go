package subscriptions_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/subscriptions"
)

func TestPeriodsSaysWhichRowCounts(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	apply(t, s)
	first := assign(t, s, subscriptions.Assignment{})
	second := assign(t, s, subscriptions.Assignment{NewPeriod: true})
	beside := assign(t, s, subscriptions.Assignment{Source: subscriptions.SourceSystem})
	const unknown = "0197c3f0-0000-7000-8000-000000000009"
	got, err := s.Periods(t.Context(), []string{first.ID, second.ID, beside.ID, unknown, first.ID})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{first.ID: false, second.ID: false, beside.ID: true}
	counts := make(map[string]bool)
	for id, row := range got {
		counts[id] = row.Counts
		if row.ID != id || row.WorkspaceID != "acme" || row.Revision != 3 {
			t.Errorf("%+v, want a row of acme at revision 3", row)
		}
	}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("which count (-want +got):\n%s", diff)
	}
	if _, err := s.Periods(t.Context(), []string{"none"}); err == nil {
		t.Error("an id that is no UUID is no error")
	}
}

func TestEnqueueKeepsTheOrderAndNeedsItsCommit(t *testing.T) {
	t.Parallel()
	_, pool := newStore(t)
	news := func(kinds ...string) (all []subscriptions.News) {
		for _, kind := range kinds {
			all = append(all, subscriptions.News{WorkspaceID: "acme", Kind: kind, Body: []byte(`{"n": 1}`)})
		}
		return all
	}
	enqueue := func(all []subscriptions.News) error {
		return pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return subscriptions.Enqueue(t.Context(), tx, all...) })
	}
	order := []string{subscriptions.NewsThreshold, subscriptions.NewsRenewed, subscriptions.NewsInvalidated, subscriptions.NewsThreshold}
	if err := enqueue(news(order...)); err != nil {
		t.Fatal(err)
	}
	if err := enqueue(nil); err != nil {
		t.Fatal(err)
	}
	if err := enqueue(news(subscriptions.NewsThreshold, "gossip")); err == nil {
		t.Error("a kind that there is not is no error")
	}
	rows, err := pool.Query(t.Context(), `SELECT subject_kind FROM outbox ORDER BY position`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(order, got); diff != "" {
		t.Errorf("outbox (-want +got):\n%s", diff)
	}
}
