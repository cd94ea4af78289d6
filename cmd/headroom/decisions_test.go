package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// decidedAt is when the decisions of these tests were taken.
var decidedAt = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// published is an allowed decision as it went out.
func published(execution string) schemas.DecisionMade {
	limit, left, atOnce := int64(100), int64(99), int64(2)
	resets, expires := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), decidedAt.Add(time.Hour)
	return schemas.DecisionMade{
		DecisionID: "d-" + execution, Kind: schemas.KindAdmission, WorkspaceID: "ws", ExecutionID: execution,
		RequestEventID: "r-" + execution, RequestEventSource: "test", Allowed: true, Message: "Allowed.",
		LimitValue: &limit, Used: 1, Remaining: &left, Exhausted: []string{}, Concurrent: 1, ConcurrentLimit: &atOnce, Peak: 1,
		ResetsAt: &resets, LeaseExpiresAt: &expires, PlanKey: "free", PlanRevision: 1,
		PeriodStart: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), PeriodEnd: resets,
		Limits: schemas.Limits{
			MaxExecutions: schemas.LimitOf(100), MaxConcurrentExecutions: schemas.LimitOf(2), MaxTasksPerExecution: schemas.Unlimited,
			MaxExecutionDurationMinutes: schemas.LimitOf(10), MaxExecutionPayloadSizeMB: schemas.Unlimited,
			MaxStorageMB: schemas.Unlimited, MaxExecutionsPerMinute: schemas.Unlimited,
		},
		Exact: true, PlanAsOf: decidedAt.Add(-time.Minute), DecidedAt: decidedAt,
	}
}

// timedOut is the denial of a running execution.
func timedOut(execution string, shadow bool) schemas.DecisionMade {
	d := published(execution)
	d.DecisionID, d.Kind, d.Allowed, d.Shadow, d.LeaseExpiresAt = "s-"+execution, schemas.KindRuntime, shadow, shadow, nil
	d.Code, d.Error, d.Message, d.Limit = 9004, "PlanExecutionTimeout", "It ran too long.", schemas.LimitDurationMinutes
	d.DecidedAt = decidedAt.Add(20 * time.Minute)
	return d
}

// fold puts decisions into the test's ledger.
func fold(t *testing.T, decisions ...schemas.DecisionMade) {
	t.Helper()
	var batch ledger.Batch
	for _, d := range decisions {
		batch.Decisions = append(batch.Decisions, ledger.Decision{DecisionMade: d, DefaultEpoch: "default.2026-11"})
	}
	if err := ledger.New(schematest.Postgres(t)).Fold(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
}

func TestDecisionsAsJSONAreThePublishedOnesWithoutWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	allowed, denied := published("e1"), timedOut("e1", false)
	fold(t, allowed, denied)
	var got, want []map[string]any
	i.mustJSON(&got, "decisions", "ws")
	body, err := json.Marshal([]schemas.DecisionMade{denied, allowed})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, &want); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"exact", "plan_as_of", "replayed"} {
		delete(want[1], field)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decisions (-published +printed):\n%s", diff)
	}
}

func TestDecisionsTellWhetherARunningExecutionWasStopped(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		shadow bool
		want   string
	}{
		"it was":              {false, "- (stopped: 9004)"},
		"it would be, if not": {true, "- (would stop: 9004)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInstallation(t)
			fold(t, published("e1"), timedOut("e1", test.shadow))
			if row := rowWith(t, i.must("decisions", "ws"), "admission"); !strings.HasSuffix(row, test.want) {
				t.Errorf("the row is %q, want %q at its end", row, test.want)
			}
		})
	}
}

func TestDecisionsShowNoMeasureOfADenialWithoutOne(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	fold(t, schemas.DecisionMade{
		DecisionID: "d-e1", Kind: schemas.KindAdmission, WorkspaceID: "ws", ExecutionID: "e1", RequestEventID: "r", RequestEventSource: "test",
		Code: 9008, Error: "PlanEnforcementUnavailable", Message: "Refused.", Exhausted: []string{}, DecidedAt: decidedAt,
	})
	row := strings.Fields(rowWith(t, i.must("decisions", "ws"), "9008"))
	if diff := cmp.Diff([]string{"PlanEnforcementUnavailable", "-", "-", "-", "1", "-"}, row[len(row)-6:]); diff != "" {
		t.Errorf("error, used, limit, plan, count and outcome (-want +got):\n%s", diff)
	}
}

// rowWith is the line of a table that has the word.
func rowWith(t *testing.T, table, word string) string {
	t.Helper()
	for line := range strings.Lines(table) {
		if strings.Contains(line, word) {
			return strings.TrimSpace(line)
		}
	}
	t.Fatalf("no line with %q in:\n%s", word, table)
	return ""
}
