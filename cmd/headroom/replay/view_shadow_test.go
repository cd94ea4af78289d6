package replay_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/cmd/headroom/replay"
	"github.com/headroomhq/headroom/schemas"
)

func TestViewCountsWhatShadowDecisionsWouldHaveDenied(t *testing.T) {
	t.Parallel()
	trace := traceOf(t,
		"kiln,bakery,one,2026-03-02T09:00:00Z,64,60,1,1",
		"kiln,bakery,two,2026-03-02T09:00:05Z,1,5,1,1",
		"kiln,bakery,three,2026-03-02T09:00:06Z,1,5,1,1")
	var out strings.Builder
	view := replay.NewView(&out, trace, map[string]string{"bakery": "free"}, false)
	shadow := func(i int, d schemas.DecisionMade) {
		d.Allowed, d.Shadow, d.PlanKey, d.Limits, d.ExecutionID = true, true, "free", small, trace.Executions[i].ID
		view.Decided(replay.Decided{At: trace.Executions[i].At, Execution: trace.Executions[i], Decision: d})
	}
	shadow(0, schemas.DecisionMade{Kind: schemas.KindAdmission, Used: 1, Concurrent: 1, Peak: 1})
	shadow(1, schemas.DecisionMade{
		Kind: schemas.KindAdmission, Code: 9006, Limit: schemas.LimitPayloadMB, Message: "Too large.", Used: 7, Concurrent: 1, Peak: 1,
	})
	shadow(2, schemas.DecisionMade{
		Kind: schemas.KindAdmission, Code: 9001, Limit: schemas.LimitExecutions, Message: "Used up.", Used: 1, Concurrent: 1, Peak: 1,
	})
	shadow(0, schemas.DecisionMade{Kind: schemas.KindRuntime, Code: 9003, Limit: schemas.LimitTasks, Message: "64 tasks.", Used: 64})
	if err := view.End(); err != nil {
		t.Fatal(err)
	}
	want := `2026-03-02 09:00:00  bakery     free  one        1/1        1/2      allowed
2026-03-02 09:00:05  bakery     free  two        1/1        1/2      shadow  9006 Too large.
2026-03-02 09:00:06  bakery     free  three      1/1        1/2      shadow  9001 Used up.
2026-03-02 09:00:00  bakery     free  one        1/1        -        shadow  9003 64 tasks.

WORKSPACE  PLAN  REQUESTED  ALLOWED  DENIED                       STOPPED WHILE RUNNING  USED/QUOTA  PEAK/AT ONCE
bakery     free  3          3        would deny 9001 ×1, 9006 ×1  would stop 9003 ×1     1/1         1/2
all              3          3        would deny 9001 ×1, 9006 ×1  would stop 9003 ×1

9001  PlanExecutionLimitReached: the period's execution quota is used up
9003  PlanTaskPerExecutionLimitReached: one execution has more tasks than the plan allows
9006  PlanPayloadSizeExceeded: a payload is larger than the plan allows
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("what the view wrote (-want +got):\n%s", diff)
	}
}

func TestViewShowsOfOthersExecutionsOnlyWhatTheirDecisionTells(t *testing.T) {
	t.Parallel()
	trace := traceOf(t, "kiln,bakery,one,2026-03-02T09:00:00Z,64,60,1,1")
	for name, test := range map[string]struct {
		decision      schemas.DecisionMade
		used, running string
	}{
		"allowed":                    {schemas.DecisionMade{Allowed: true, Used: 1, Concurrent: 1}, "1/1", "1/2"},
		"denied by the quota":        {schemas.DecisionMade{Code: 9001, Limit: schemas.LimitExecutions, Used: 1, Concurrent: 2}, "1/1", "2/2"},
		"denied for its payload":     {schemas.DecisionMade{Code: 9006, Limit: schemas.LimitPayloadMB, Used: 6, Concurrent: 1}, "-", "1/2"},
		"stopped for its tasks":      {schemas.DecisionMade{Kind: schemas.KindRuntime, Code: 9003, Limit: schemas.LimitTasks, Used: 60}, "-", "-"},
		"denied without measurement": {schemas.DecisionMade{Code: 9008}, "-", "-"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			view := replay.NewView(&out, trace, nil, false)
			d := test.decision
			if d.Kind == "" {
				d.Kind = schemas.KindAdmission
			}
			d.WorkspaceID, d.ExecutionID, d.PlanKey, d.Limits, d.DecidedAt = "lantern", "by-hand", "free", small, time.Now()
			view.Overheard(d)
			fields := strings.Fields(out.String()) // date, clock, workspace, plan, execution, used, running, verdict
			if len(fields) < 8 || fields[5] != test.used || fields[6] != test.running {
				t.Errorf("the line is %q, want used %s and running %s", out.String(), test.used, test.running)
			}
		})
	}
}
