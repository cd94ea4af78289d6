package replay_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/cmd/headroom/replay"
	"github.com/headroomhq/headroom/schemas"
)

var small = schemas.Limits{
	MaxExecutions: schemas.LimitOf(1), MaxConcurrentExecutions: schemas.LimitOf(2), MaxTasksPerExecution: schemas.LimitOf(50),
	MaxExecutionDurationMinutes: schemas.LimitOf(10), MaxExecutionPayloadSizeMB: schemas.LimitOf(5),
	MaxStorageMB: schemas.LimitOf(100), MaxExecutionsPerMinute: schemas.Unlimited,
}

var large = schemas.Limits{
	MaxExecutions: schemas.Unlimited, MaxConcurrentExecutions: schemas.Unlimited, MaxTasksPerExecution: schemas.Unlimited,
	MaxExecutionDurationMinutes: schemas.Unlimited, MaxExecutionPayloadSizeMB: schemas.Unlimited,
	MaxStorageMB: schemas.Unlimited, MaxExecutionsPerMinute: schemas.Unlimited,
}

// shown plays five decisions to a view and returns what it wrote.
func shown(t *testing.T, colour bool) string {
	t.Helper()
	trace := traceOf(t,
		"kiln,bakery,one,2026-03-02T09:00:00Z,64,60,1,1",
		"kiln,bakery,two,2026-03-02T09:00:05Z,1,5,1,1",
		"kiln,orchard,"+strings.Repeat("long-", 10)+"name,2026-03-02T09:00:06Z,1,5,1,1",
		"kiln,orchard,unheard,2026-03-02T09:00:07Z,1,5,1,1",
		"kiln,harbor,late,2026-03-02T09:00:08Z,1,5,1,1")
	plans := map[string]string{"bakery": "free", "orchard": "enterprise", "harbor": "free"}
	var out strings.Builder
	view := replay.NewView(&out, trace, plans, colour)
	view.Begin([]replay.Plan{{Key: "free", Limits: small}, {Key: "enterprise", Limits: large}})
	one, two, long, late := trace.Executions[0], trace.Executions[1], trace.Executions[2], trace.Executions[4]
	view.Decided(replay.Decided{At: one.At, Execution: one, Decision: schemas.DecisionMade{
		Kind: schemas.KindAdmission, ExecutionID: one.ID, Allowed: true, Limit: "", Used: 1, Concurrent: 1, Peak: 1,
		PlanKey: "free", Limits: small,
	}})
	view.Decided(replay.Decided{At: two.At, Execution: two, Decision: schemas.DecisionMade{
		Kind: schemas.KindAdmission, ExecutionID: two.ID, Code: 9001, Message: "All 1 are used.", Limit: schemas.LimitExecutions,
		Used: 1, Concurrent: 1, Peak: 1, PlanKey: "free", Limits: small,
	}})
	view.Decided(replay.Decided{At: long.At, Execution: long, Decision: schemas.DecisionMade{
		Kind: schemas.KindAdmission, ExecutionID: long.ID, Allowed: true, Used: 7, Concurrent: 3, Peak: 4, PlanKey: "enterprise", Limits: large,
	}})
	view.Decided(replay.Decided{At: late.At, Execution: late, Decision: schemas.DecisionMade{
		Kind: schemas.KindAdmission, ExecutionID: late.ID, Code: 9008, Message: "No answer in time.",
	}})
	view.Decided(replay.Decided{At: one.End(), Execution: one, Decision: schemas.DecisionMade{
		Kind: schemas.KindRuntime, ExecutionID: one.ID, Code: 9003, Message: "64 tasks\x1b[2J.", Limit: schemas.LimitTasks,
		Used: 64, Concurrent: 1, Peak: 1, PlanKey: "free", Limits: small,
	}})
	view.Overheard(schemas.DecisionMade{
		Kind: schemas.KindAdmission, WorkspaceID: "lantern", ExecutionID: "by-hand", Allowed: true, Used: 12, Concurrent: 1,
		PlanKey: "free", Limits: small, DecidedAt: time.Date(2027, 1, 2, 3, 4, 5, 6, time.UTC),
	})
	view.Overheard(schemas.DecisionMade{
		Kind: schemas.KindAdmission, WorkspaceID: "lantern", ExecutionID: "by-hand-2", Allowed: true, Shadow: true, Code: 9002,
		Message: "Two are running.", Used: 2, Concurrent: 2, PlanKey: "free", Limits: small,
		DecidedAt: time.Date(2027, 1, 2, 3, 4, 6, 0, time.UTC),
	})
	if view.Unanswered() != 1 {
		t.Errorf("%d executions are unanswered, want 1", view.Unanswered())
	}
	if err := view.End(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestViewShowsEachDecisionAndWhatBecameOfEachWorkspace(t *testing.T) {
	t.Parallel()
	want := `PLAN        EXECUTIONS  AT ONCE    TASKS EACH  MINUTES EACH  MEGABYTES EACH  STARTS A MINUTE
free        1           2          50          10            5               unlimited
enterprise  unlimited   unlimited  unlimited   unlimited     unlimited       unlimited

CLOCK                WORKSPACE  PLAN        EXECUTION                                 USED       RUNNING  DECISION
2026-03-02 09:00:00  bakery     free        one                                       1/1        1/2      allowed
2026-03-02 09:00:05  bakery     free        two                                       1/1        1/2      denied  9001 All 1 are used.
2026-03-02 09:00:06  orchard    enterprise  long-long-long-long-long-long-long-long…  7/∞        3/∞      allowed
2026-03-02 09:00:08  harbor     free        late                                      -          -        denied  9008 No answer in time.
2026-03-02 09:01:00  bakery     free        one                                       1/1        -        stopped 9003 64 tasks?[2J.
2027-01-02 03:04:05  lantern    free        by-hand                                   12/1       1/2      allowed
2027-01-02 03:04:06  lantern    free        by-hand-2                                 -          2/2      shadow  9002 Two are running.

WORKSPACE  PLAN        REQUESTED  ALLOWED  DENIED            STOPPED WHILE RUNNING  USED/QUOTA  PEAK/AT ONCE
bakery     free        2          1        9001 ×1           9003 ×1                1/1         1/2
orchard    enterprise  2          1        -                 -                      7/∞         4/∞
harbor     free        1          0        9008 ×1           -                      -           -
all                    5          2        9001 ×1, 9008 ×1  9003 ×1

9001  PlanExecutionLimitReached: the period's execution quota is used up
9003  PlanTaskPerExecutionLimitReached: one execution has more tasks than the plan allows
9008  PlanEnforcementUnavailable: Headroom could not decide, and refuses then

1 of 5 executions were not decided.
`
	if diff := cmp.Diff(want, shown(t, false)); diff != "" {
		t.Errorf("what the view wrote (-want +got):\n%s", diff)
	}
}

func TestViewInColourSaysTheSame(t *testing.T) {
	t.Parallel()
	coloured := shown(t, true)
	for _, verdict := range []string{"\x1b[32mallowed\x1b[0m", "\x1b[31mdenied  9001\x1b[0m", "\x1b[33mstopped 9003\x1b[0m"} {
		if !strings.Contains(coloured, verdict) {
			t.Errorf("no %q in colour", verdict)
		}
	}
	bare := strings.NewReplacer("\x1b[32m", "", "\x1b[31m", "", "\x1b[33m", "", "\x1b[2m", "", "\x1b[0m", "").Replace(coloured)
	if diff := cmp.Diff(shown(t, false), bare); diff != "" {
		t.Errorf("without its colours (-plain +coloured):\n%s", diff)
	}
}

func TestViewTellsInTheEndThatItCouldNotWrite(t *testing.T) {
	t.Parallel()
	trace := traceOf(t, "kiln,bakery,one,2026-03-02T09:00:00Z,64,60,1,1")
	full := &fullDisk{}
	view := replay.NewView(full, trace, nil, false)
	view.Begin(nil)
	if err := view.End(); !errors.Is(err, errFull) || full.writes != 1 {
		t.Errorf("got %v after %d writes, want the first error after one", err, full.writes)
	}
}

var errFull = errors.New("disk full")

type fullDisk struct{ writes int }

func (f *fullDisk) Write([]byte) (int, error) { f.writes++; return 0, errFull }
