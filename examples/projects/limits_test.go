package projects_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	projectRows = `SELECT count(*) FROM projects_app.projects WHERE workspace_id = $1`
	counter     = `SELECT coalesce(max(count), 0) FROM usage_counters WHERE workspace_id = $1 AND feature_key = $2`
	seatRows    = `SELECT (SELECT count(*) FROM projects_app.members WHERE workspace_id = $1)
		+ (SELECT count(*) FROM projects_app.invitations WHERE workspace_id = $1)`
)

// together sends requests at the same moment and returns their statuses, sorted.
func together(t *testing.T, n int, send func(i int) reply) []int {
	t.Helper()
	statuses := make([]int, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			statuses[i] = send(i).status
		})
	}
	close(start)
	all.Wait()
	slices.Sort(statuses)
	return statuses
}

func TestOfTwoThatWantTheLastProjectOneGetsIt(t *testing.T) {
	t.Parallel()
	s := open(t)
	for round := range 3 {
		workspace := fmt.Sprintf("race_%d", round)
		for _, name := range []string{"one", "two"} {
			s.post(t, "/w/"+workspace+"/projects", "name", name).must(t, http.StatusCreated)
		}
		got := together(t, 2, func(i int) reply {
			return s.post(t, "/w/"+workspace+"/projects", "name", fmt.Sprintf("last %d", i))
		})
		if diff := cmp.Diff([]int{http.StatusCreated, http.StatusTooManyRequests}, got); diff != "" {
			t.Errorf("statuses (-want +got):\n%s", diff)
		}
		if rows, counted := s.count(t, projectRows, workspace), s.count(t, counter, workspace, "projects"); rows != 3 || counted != 3 {
			t.Errorf("%d projects, %d counted; want 3 of each", rows, counted)
		}
	}
}

func TestOfTwoThatWantTheLastSeatOneGetsIt(t *testing.T) {
	t.Parallel()
	s := open(t)
	for round := range 3 {
		workspace := fmt.Sprintf("race_%d", round)
		s.post(t, "/w/"+workspace+"/invitations", "email", "first@example.com").must(t, http.StatusCreated)
		got := together(t, 2, func(i int) reply {
			return s.post(t, "/w/"+workspace+"/invitations", "email", fmt.Sprintf("last%d@example.com", i))
		})
		if diff := cmp.Diff([]int{http.StatusCreated, http.StatusTooManyRequests}, got); diff != "" {
			t.Errorf("statuses (-want +got):\n%s", diff)
		}
		if rows := s.count(t, seatRows, workspace); rows != 2 {
			t.Errorf("%d seats are taken, want 2", rows)
		}
	}
}

func TestASeatIsAMemberOrAnInvitation(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.post(t, "/w/acme/invitations", "email", "Maria@example.com").must(t, http.StatusCreated)
	s.post(t, "/w/acme/invitations/accept", "email", "maria@example.com").must(t, http.StatusOK)
	s.post(t, "/w/acme/invitations", "email", "maria@example.com").must(t, http.StatusConflict)
	s.post(t, "/w/acme/invitations", "email", "jonas@example.com").must(t, http.StatusCreated)
	got := s.post(t, "/w/acme/invitations", "email", "eva@example.com").must(t, http.StatusTooManyRequests)
	want := map[string]any{
		"type": problemBase + "quota-exceeded", "title": "Quota exceeded", "status": 429.0,
		"detail": "Plan free allows 2 seats: 2 in use, 1 more asked for.",
		"error":  "QuotaExceeded", "limit": "seats", "limit_value": 2.0, "used": 2.0, "remaining": 0.0,
		"upgrade_hint": "upgrade to plan pro, which allows 5 seats",
	}
	if diff := cmp.Diff(want, got.json(t)); diff != "" {
		t.Errorf("the problem (-want +got):\n%s", diff)
	}
	s.post(t, "/w/acme/seats/remove", "email", "jonas@example.com").must(t, http.StatusOK)
	s.post(t, "/w/acme/seats/remove", "email", "jonas@example.com").must(t, http.StatusNotFound)
	s.post(t, "/w/acme/invitations", "email", "eva@example.com").must(t, http.StatusCreated)
	s.post(t, "/w/acme/plan", "plan", "pro").must(t, http.StatusOK)
	s.post(t, "/w/acme/invitations", "email", "jonas@example.com").must(t, http.StatusCreated)
}

func TestStorageOverTheQuotaIsRefusedWithAPromptToUpgrade(t *testing.T) {
	t.Parallel()
	s := open(t)
	id := s.post(t, "/w/acme/files", "name", "a.zip", "size_kb", "700").must(t, http.StatusCreated).id(t)
	got := s.post(t, "/w/acme/files", "name", "b.zip", "size_kb", "400").must(t, http.StatusTooManyRequests)
	if got.contentType != "application/problem+json" {
		t.Errorf("Content-Type %s", got.contentType)
	}
	want := map[string]any{
		"type": problemBase + "plan-storage-limit-reached", "title": "Storage limit reached", "status": 429.0,
		"detail": "Plan free allows 1 MB of storage: 700 KB in use, 400 KB more asked for.",
		"code":   9007.0, "error": "PlanStorageLimitReached", "limit": "storage_bytes", "limit_value": 1048576.0,
		"used": 716800.0, "remaining": 331776.0, "upgrade_hint": "upgrade to plan pro, which allows 10 MB of storage",
	}
	if diff := cmp.Diff(want, got.json(t)); diff != "" {
		t.Errorf("the problem (-want +got):\n%s", diff)
	}
	prompt := s.press(t, "/w/acme/files", "name", "b.zip", "size_kb", "400").must(t, http.StatusTooManyRequests)
	if !strings.HasPrefix(prompt.contentType, "text/html") || !strings.Contains(prompt.body, `<button class="primary" name="plan" value="pro">`) {
		t.Errorf("no prompt to upgrade in %s: %s", prompt.contentType, prompt.body)
	}
	for _, words := range []string{"Your plan has no room for that", "Upgrade to pro: 10 MB of storage", "HTTP 429 · PlanStorageLimitReached · code 9007"} {
		if !strings.Contains(textOf(prompt.body), words) {
			t.Errorf("the page lacks %q", words)
		}
	}
	too := s.post(t, "/w/acme/files", "name", "c.zip", "size_kb", "200000").must(t, http.StatusTooManyRequests)
	if hint := too.json(t)["upgrade_hint"]; hint != "no larger plan has room" {
		t.Errorf("hint for what no plan holds: %v", hint)
	}
	s.post(t, "/w/acme/files/"+id+"/delete").must(t, http.StatusOK)
	s.post(t, "/w/acme/files/"+id+"/delete").must(t, http.StatusNotFound)
	if n := s.count(t, counter, "acme", "storage_bytes"); n != 0 {
		t.Errorf("%d bytes are counted, and there is no file", n)
	}
	s.press(t, "/w/acme/plan", "plan", "pro").must(t, http.StatusOK)
	s.post(t, "/w/acme/files", "name", "b.zip", "size_kb", "10240").must(t, http.StatusCreated)
}

// The insert fails after the unit was counted; the rollback gives it back.
func TestAProjectThatCannotBeInsertedIsNotCounted(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.post(t, "/w/acme/projects", "name", "Apollo").must(t, http.StatusCreated)
	for range 5 {
		s.post(t, "/w/acme/projects", "name", "Apollo").must(t, http.StatusConflict)
	}
	if n := s.count(t, counter, "acme", "projects"); n != 1 {
		t.Errorf("%d projects are counted, want 1", n)
	}
	got := s.post(t, "/w/acme/projects", "name", "Gemini").must(t, http.StatusCreated).json(t)
	delete(got, "id")
	if diff := cmp.Diff(map[string]any{"used": 2.0, "limit": 3.0, "unlimited": false, "remaining": 1.0}, got); diff != "" {
		t.Errorf("the balance (-want +got):\n%s", diff)
	}
}
