package replay_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/cmd/headroom/replay"
	"github.com/headroomhq/headroom/schemas"
)

// recorder is a Headroom that writes down what it is told.
type recorder struct {
	heard []string
	deny  map[string]bool // executions that may not start
	stop  map[string]bool // executions that are stopped at their progress
	fail  map[string]error
}

func (r *recorder) hear(verb, execution, rest string, at time.Time) error {
	line := at.UTC().Format("15:04:05.000") + " " + verb + " " + execution
	r.heard = append(r.heard, strings.TrimSpace(line+" "+rest))
	return r.fail[verb+" "+execution]
}

func (r *recorder) Request(_ context.Context, e schemas.Event[schemas.ExecutionRequested]) (schemas.DecisionMade, error) {
	err := r.hear("requested", e.Data.ExecutionID, fmt.Sprintf("payload=%d source=%s", *e.Data.PayloadBytes, e.Source), e.Time)
	return schemas.DecisionMade{
		Kind: schemas.KindAdmission, ExecutionID: e.Data.ExecutionID, Allowed: !r.deny[e.Data.ExecutionID],
	}, err
}

func (r *recorder) Progress(_ context.Context, e schemas.Event[schemas.ExecutionProgressed]) (*schemas.DecisionMade, error) {
	err := r.hear("progressed", e.Data.ExecutionID,
		fmt.Sprintf("tasks=%d payload=%d elapsed=%s", *e.Data.Tasks, *e.Data.PayloadBytes, e.Time.Sub(*e.Data.StartedAt)), e.Time)
	if !r.stop[e.Data.ExecutionID] {
		return nil, err
	}
	return &schemas.DecisionMade{Kind: schemas.KindRuntime, ExecutionID: e.Data.ExecutionID, Code: 9004}, err
}

func (r *recorder) Complete(_ context.Context, e schemas.Event[schemas.ExecutionCompleted]) error {
	return r.hear("completed", e.Data.ExecutionID, string(e.Data.Outcome), e.Time)
}

func traceOf(t *testing.T, rows ...string) replay.Trace {
	t.Helper()
	trace, err := replay.ReadTrace("trace.csv", strings.NewReader(header+strings.Join(rows, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func TestPlayKeepsToTheClockOfTheTrace(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		rows    []string
		deny    map[string]bool
		stop    map[string]bool
		want    []string
		decided []string
	}{
		"an end comes before a start of the same instant": {
			rows: []string{
				"kiln,bakery,one,2026-03-02T09:00:00Z,3,60,10,20",
				"kiln,orchard,two,2026-03-02T09:01:00Z,4,0.5,30,40",
			},
			want: []string{
				"09:00:00.000 requested one payload=10 source=trace/kiln",
				"09:01:00.000 progressed one tasks=3 payload=20 elapsed=1m0s",
				"09:01:00.000 completed one succeeded",
				"09:01:00.000 requested two payload=30 source=trace/kiln",
				"09:01:00.500 progressed two tasks=4 payload=40 elapsed=500ms",
				"09:01:00.500 completed two succeeded",
			},
			decided: []string{"09:00:00.000 one", "09:01:00.000 two"},
		},
		"an execution without duration ends after it began, and before the next begins": {
			rows: []string{
				"kiln,bakery,one,2026-03-02T09:00:00Z,1,0,1,1",
				"kiln,bakery,two,2026-03-02T09:00:00Z,1,0,1,1",
			},
			want: []string{
				"09:00:00.000 requested one payload=1 source=trace/kiln",
				"09:00:00.000 progressed one tasks=1 payload=1 elapsed=0s",
				"09:00:00.000 completed one succeeded",
				"09:00:00.000 requested two payload=1 source=trace/kiln",
				"09:00:00.000 progressed two tasks=1 payload=1 elapsed=0s",
				"09:00:00.000 completed two succeeded",
			},
			decided: []string{"09:00:00.000 one", "09:00:00.000 two"},
		},
		"a denied execution never runs, a stopped one is canceled": {
			rows: []string{
				"kiln,bakery,denied,2026-03-02T09:00:00Z,1,5,1,1",
				"kiln,bakery,stopped,2026-03-02T09:00:01Z,1,5,1,1",
			},
			deny: map[string]bool{"denied": true},
			stop: map[string]bool{"stopped": true},
			want: []string{
				"09:00:00.000 requested denied payload=1 source=trace/kiln",
				"09:00:01.000 requested stopped payload=1 source=trace/kiln",
				"09:00:06.000 progressed stopped tasks=1 payload=1 elapsed=5s",
				"09:00:06.000 completed stopped canceled",
			},
			decided: []string{"09:00:00.000 denied", "09:00:01.000 stopped", "09:00:06.000 stopped"},
		},
		"those that end together end in the order of the file": {
			rows: []string{
				"kiln,bakery,long,2026-03-02T09:00:00Z,1,10,1,1",
				"kiln,bakery,short,2026-03-02T09:00:05Z,1,5,1,1",
			},
			want: []string{
				"09:00:00.000 requested long payload=1 source=trace/kiln",
				"09:00:05.000 requested short payload=1 source=trace/kiln",
				"09:00:10.000 progressed long tasks=1 payload=1 elapsed=10s",
				"09:00:10.000 completed long succeeded",
				"09:00:10.000 progressed short tasks=1 payload=1 elapsed=5s",
				"09:00:10.000 completed short succeeded",
			},
			decided: []string{"09:00:00.000 long", "09:00:05.000 short"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			headroom := &recorder{deny: test.deny, stop: test.stop}
			var decided []string
			err := replay.Play(t.Context(), traceOf(t, test.rows...), replay.Options{
				Headroom: headroom, Source: "trace",
				Decided: func(d replay.Decided) {
					decided = append(decided, d.At.Format("15:04:05.000")+" "+d.Decision.ExecutionID)
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, headroom.heard); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.decided, decided); diff != "" {
				t.Errorf("decisions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlayStopsWithTheEventThatFails(t *testing.T) {
	t.Parallel()
	rows := []string{
		"kiln,bakery,one,2026-03-02T09:00:00Z,1,5,1,1",
		"kiln,bakery,two,2026-03-02T09:00:09Z,1,5,1,1",
	}
	for _, event := range []string{"requested one", "progressed one", "completed one"} {
		t.Run(event, func(t *testing.T) {
			t.Parallel()
			headroom := &recorder{fail: map[string]error{event: replay.ErrNoDecision}}
			err := replay.Play(t.Context(), traceOf(t, rows...), replay.Options{Headroom: headroom, Decided: func(replay.Decided) {}})
			if !errors.Is(err, replay.ErrNoDecision) || !strings.Contains(err.Error(), "trace.csv:2, execution one of bakery") {
				t.Errorf("got %v, want the failure with the place in the trace", err)
			}
			if last := headroom.heard[len(headroom.heard)-1]; !strings.Contains(last, event) {
				t.Errorf("went on to %q after the failure", last)
			}
		})
	}
}

func TestPlayPausesAtTheSpeedItIsGiven(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		trace := traceOf(t,
			"kiln,bakery,one,2026-03-02T09:00:00Z,1,30,1,1",   // ends 30 s later: half a second
			"kiln,bakery,two,2026-03-02T09:01:00Z,1,0,1,1",    // 30 s: half a second
			"kiln,bakery,three,2027-03-02T09:00:00Z,1,60,1,1") // a year: two seconds; then 60 s: one
		speed, err := replay.ParseSpeed("60", trace)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if err := replay.Play(t.Context(), trace, replay.Options{Headroom: &recorder{}, Speed: speed, Decided: func(replay.Decided) {}}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != 4*time.Second {
			t.Errorf("replay took %s, want 4s", took)
		}
	})
}

func TestPlayEndsInTheMiddleOfAPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		trace := traceOf(t, "kiln,bakery,one,2026-03-02T09:00:00Z,1,0,1,1", "kiln,bakery,two,2027-03-02T09:00:00Z,1,0,1,1")
		speed, err := replay.ParseSpeed("1", trace)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		headroom := &recorder{}
		err = replay.Play(ctx, trace, replay.Options{Headroom: headroom, Speed: speed, Decided: func(replay.Decided) {}})
		if !errors.Is(err, context.DeadlineExceeded) || len(headroom.heard) != 3 {
			t.Errorf("got %v after %d events, want the context's end after 3", err, len(headroom.heard))
		}
	})
}
