package projects_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// downgraded has ten projects, p01 to p10, and has gone from pro to free.
func downgraded(t *testing.T) (s *site, ids []string) {
	t.Helper()
	s = open(t)
	s.post(t, "/w/acme/plan", "plan", "pro").must(t, http.StatusOK)
	for i := range 10 {
		ids = append(ids, s.post(t, "/w/acme/projects", "name", fmt.Sprintf("p%02d", i+1)).must(t, http.StatusCreated).id(t))
	}
	if got := s.lockedNames(t, "acme"); len(got) != 0 {
		t.Fatalf("locked before the downgrade: %v", got)
	}
	s.post(t, "/w/acme/plan", "plan", "free").must(t, http.StatusOK)
	return s, ids
}

func (s *site) wantLocked(t *testing.T, when string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), s.lockedNames(t, "acme")); diff != "" {
		t.Errorf("locked %s (-want +got):\n%s", when, diff)
	}
}

func TestADowngradeLocksTheNewestProjects(t *testing.T) {
	t.Parallel()
	s, ids := downgraded(t)
	s.wantLocked(t, "after the downgrade", "p04", "p05", "p06", "p07", "p08", "p09", "p10")
	text, _ := s.page(t, "acme")
	for _, words := range []string{"7 of 10 projects are locked.", "10 of 3", "7 locked"} {
		if !strings.Contains(text, words) {
			t.Errorf("the page lacks %q", words)
		}
	}
	s.post(t, "/w/acme/projects/"+ids[0]+"/rename", "name", "still mine").must(t, http.StatusOK)
	s.post(t, "/w/acme/projects", "name", "an eleventh").must(t, http.StatusTooManyRequests)

	got := s.post(t, "/w/acme/projects/"+ids[9]+"/rename", "name", "not mine").must(t, http.StatusLocked)
	want := map[string]any{
		"type": problemBase + "resource-locked", "title": "Resource is locked", "status": 423.0, "error": "ResourceLocked",
		"detail": "Plan free allows 3 projects and there are 10. This one is beyond that and locked; it is kept as it is.",
		"limit":  "projects", "limit_value": 3.0, "used": 10.0, "remaining": 0.0,
		"upgrade_hint": "upgrade to plan pro, which allows 10 projects; delete 7 others; or keep this one instead of another",
	}
	if diff := cmp.Diff(want, got.json(t)); diff != "" {
		t.Errorf("the problem (-want +got):\n%s", diff)
	}
	prompt := s.press(t, "/w/acme/projects/"+ids[9]+"/rename", "name", "not mine").must(t, http.StatusLocked)
	for _, words := range []string{"This project is locked", "Upgrade to pro: 10 projects", "Keep this one instead of “p03”", "Delete others"} {
		if !strings.Contains(textOf(prompt.body), words) {
			t.Errorf("the prompt lacks %q", words)
		}
	}
	if n := s.count(t, projectRows+` AND name IN ('still mine', 'p10')`, "acme"); n != 2 {
		t.Errorf("%d projects have the names they should, want 2", n)
	}
}

func TestDeletingOthersUnlocksTheOldestLockedProject(t *testing.T) {
	t.Parallel()
	s, ids := downgraded(t)
	s.press(t, "/w/acme/projects/"+ids[1]+"/delete").must(t, http.StatusOK)
	s.wantLocked(t, "after an unlocked one is gone", "p05", "p06", "p07", "p08", "p09", "p10")
	s.post(t, "/w/acme/projects/"+ids[3]+"/rename", "name", "p04 again").must(t, http.StatusOK)
	s.post(t, "/w/acme/projects/"+ids[9]+"/delete").must(t, http.StatusOK)
	s.wantLocked(t, "after a locked one is gone", "p05", "p06", "p07", "p08", "p09")
	s.post(t, "/w/acme/projects/"+ids[9]+"/delete").must(t, http.StatusNotFound)
	if n := s.count(t, counter, "acme", "projects"); n != 8 {
		t.Errorf("%d projects are counted, want 8", n)
	}
}

func TestTheCustomerChoosesWhatStaysUnlocked(t *testing.T) {
	t.Parallel()
	s, ids := downgraded(t)
	s.press(t, "/w/acme/projects/keep", "keep", ids[9], "keep", ids[0], "keep", ids[5]).must(t, http.StatusOK)
	s.wantLocked(t, "after the choice", "p02", "p03", "p04", "p05", "p07", "p08", "p09")
	s.press(t, "/w/acme/projects/"+ids[6]+"/keep").must(t, http.StatusOK)
	s.wantLocked(t, "after one was kept instead of the last of them", "p02", "p03", "p04", "p05", "p06", "p08", "p09")
	s.press(t, "/w/acme/projects/"+ids[6]+"/keep").must(t, http.StatusOK)
	s.wantLocked(t, "after that once more", "p02", "p03", "p04", "p05", "p06", "p08", "p09")

	s.post(t, "/w/acme/projects/keep", "keep", ids[0], "keep", ids[1], "keep", ids[2], "keep", ids[3]).must(t, http.StatusUnprocessableEntity)
	s.post(t, "/w/acme/projects/keep", "keep", "not-mine").must(t, http.StatusUnprocessableEntity)
	s.wantLocked(t, "after two wrong choices", "p02", "p03", "p04", "p05", "p06", "p08", "p09")
}

func TestAnUpgradeUnlocksAll(t *testing.T) {
	t.Parallel()
	s, ids := downgraded(t)
	s.press(t, "/w/acme/plan", "plan", "pro").must(t, http.StatusOK)
	s.wantLocked(t, "after the upgrade")
	s.post(t, "/w/acme/projects/"+ids[9]+"/rename", "name", "mine again").must(t, http.StatusOK)
	s.post(t, "/w/acme/projects", "name", "an eleventh").must(t, http.StatusTooManyRequests)
	s.post(t, "/w/acme/plan", "plan", "business").must(t, http.StatusOK)
	got := s.post(t, "/w/acme/projects", "name", "an eleventh").must(t, http.StatusCreated).json(t)
	delete(got, "id")
	if diff := cmp.Diff(map[string]any{"used": 11.0, "limit": nil, "unlimited": true, "remaining": nil}, got); diff != "" {
		t.Errorf("the balance (-want +got):\n%s", diff)
	}
}
