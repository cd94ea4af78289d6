package enforcement_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

func TestEveryScriptRunsOnARedisCluster(t *testing.T) {
	t.Parallel()
	cluster := schematest.RedisCluster(t)
	h := houseOver(nil, unlimited(func(l *schemas.Limits) { l.MaxExecutions = schemas.LimitOf(1) }))
	e := enforcement.New(enforcement.Options{Redis: cluster, Plans: h.plans, Usage: h.usage, Prefix: prefix})
	var requests []enforcement.Request
	var done []enforcement.Completion
	var progress []enforcement.Progress
	for _, workspace := range []string{"ws1", "ws2", "ws3", "ws-4", "ws_5"} {
		for _, execution := range []string{"a", "b"} {
			r := ask(execution, "1")
			r.WorkspaceID = workspace
			requests = append(requests, r)
		}
		progress = append(progress, enforcement.Progress{WorkspaceID: workspace, ExecutionID: "a"})
		done = append(done, enforcement.Completion{WorkspaceID: workspace, ExecutionID: "a", Outcome: schemas.OutcomeNotStarted})
	}
	for i, got := range e.Admit(t.Context(), requests) {
		if want := i%2 == 0; got.Err != nil || got.Decision.Allowed != want {
			t.Errorf("admit %s of %s: allowed %v, error %v", requests[i].ExecutionID, requests[i].WorkspaceID, got.Decision.Allowed, got.Err)
		}
	}
	for i, got := range e.Extend(t.Context(), progress) {
		if got.Err != nil || !got.Live {
			t.Errorf("extend %d: live %v, error %v", i, got.Live, got.Err)
		}
	}
	for _, p := range progress {
		if got, err := e.Running(t.Context(), enforcement.RunningQuery{WorkspaceID: p.WorkspaceID}); err != nil || len(got) != 1 {
			t.Errorf("running in %s: %+v, %v", p.WorkspaceID, got, err)
		}
	}
	for i, got := range e.Release(t.Context(), done) {
		if got.Err != nil || !got.Released || !got.Refunded {
			t.Errorf("release %d: %+v", i, got)
		}
	}
	for i, got := range e.Withdraw(t.Context(), requests[:2]) {
		if got.Err != nil {
			t.Errorf("withdraw %d: %v", i, got.Err)
		}
	}
	got, err := e.Outstanding(t.Context(), "ws1", "epoch-1")
	if err != nil || got.Used != 0 || got.Running != 0 {
		t.Errorf("%+v, error %v, want nothing used or running", got, err)
	}
}

// A single server does not mind a key that is not in KEYS; a cluster of several
// masters would send the script to the wrong one.
func TestNoScriptTouchesAKeyThatIsNotInKEYS(t *testing.T) {
	t.Parallel()
	call := regexp.MustCompile(`redis\.call\('[A-Z]+',? ?([A-Za-z_.]*)`)
	allowed := regexp.MustCompile(`^(KEYS|current|previous|key|each)?$`)
	files, err := os.ReadDir("scripts")
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, f := range files {
		body, err := os.ReadFile("scripts/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range call.FindAllSubmatch(body, -1) {
			calls++
			if !allowed.Match(found[1]) {
				t.Errorf("%s: %s does not name its key by KEYS", f.Name(), found[0])
			}
		}
	}
	if calls < 20 {
		t.Errorf("%d calls found in the scripts, want all of them", calls)
	}
}
