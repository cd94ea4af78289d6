package client_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/client"
	"github.com/headroomhq/headroom/schemas"
)

func requestOf(a asked) enforcement.Request {
	return enforcement.Request{
		WorkspaceID: a.event.Data.WorkspaceID, ExecutionID: a.event.Data.ExecutionID, EventID: a.event.ID, EventSource: a.event.Source,
	}
}

func TestARunIsStoppedByWhatHeadroomWouldStopItFor(t *testing.T) {
	t.Parallel()
	const megabyte = 1_048_576
	bounded := limits(func(l *schemas.Limits) {
		l.MaxTasksPerExecution = schemas.LimitOf(50)
		l.MaxExecutionDurationMinutes = schemas.LimitOf(10)
		l.MaxExecutionPayloadSizeMB = schemas.LimitOf(5)
	})
	nothing := limits(func(l *schemas.Limits) {
		l.MaxTasksPerExecution, l.MaxExecutionDurationMinutes, l.MaxExecutionPayloadSizeMB = schemas.LimitOf(0), schemas.LimitOf(0), schemas.LimitOf(0)
	})
	for name, test := range map[string]struct {
		limits         schemas.Limits
		tasks, payload int64
		ran            time.Duration
		code           int
	}{
		"nothing yet":                       {bounded, 0, 0, 0, 0},
		"as many tasks as there may be":     {bounded, 50, 0, 0, 0},
		"one task more":                     {bounded, 51, 0, 0, 9003},
		"as long as it may be":              {bounded, 1, 0, 10 * time.Minute, 0},
		"a moment longer":                   {bounded, 1, 0, 10*time.Minute + time.Millisecond, 9004},
		"as large as it may be":             {bounded, 1, 5 * megabyte, time.Minute, 0},
		"a byte larger":                     {bounded, 1, 5*megabyte + 1, time.Minute, 9006},
		"a byte, a task and a moment":       {bounded, 51, 5*megabyte + 1, 11 * time.Minute, 9006},
		"a task and a moment":               {bounded, 51, 0, 11 * time.Minute, 9003},
		"where nothing may be, nothing":     {nothing, 0, 0, 0, 0},
		"where nothing may be, a task":      {nothing, 1, 0, 0, 9003},
		"where nothing may be, a byte":      {nothing, 0, 1, 0, 9006},
		"where nothing may be, a moment":    {nothing, 0, 0, time.Millisecond, 9004},
		"without bounds, everything":        {limits(nil), math.MaxInt64 >> 10, math.MaxInt64 >> 10, 10_000 * time.Hour, 0},
		"a limit too large to be in bytes":  {limits(func(l *schemas.Limits) { l.MaxExecutionPayloadSizeMB = schemas.LimitOf(1 << 50) }), 1, 1 << 52, 0, 0},
		"a limit longer than a clock knows": {limits(func(l *schemas.Limits) { l.MaxExecutionDurationMinutes = schemas.LimitOf(1 << 50) }), 1, 1, 50_000 * time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHeadroom(t, test.limits, time.Hour)
			now := time.Now().UTC().Truncate(time.Millisecond)
			clock := now
			run := admitted(t, engine(t, func(o *client.Options) { o.Now = func() time.Time { return clock } }), execution("e1"))
			clock = now.Add(test.ran)
			var here error
			if test.payload > 0 {
				here = run.Payload(test.payload)
			}
			if here == nil && test.tasks > 0 {
				here = run.Tasks(test.tasks)
			}
			if here == nil {
				here = run.Elapsed(clock)
			}
			there := h.Extend(t.Context(), []enforcement.Progress{{
				WorkspaceID: "ws", ExecutionID: "e1", EventID: run.Decision().RequestEventID, EventSource: "test-engine",
				Tasks: positive(test.tasks), PayloadBytes: positive(test.payload), StartedAt: now, At: clock,
			}})[0]
			agree(t, test.code, here, there)
			if again := run.Tasks(0); test.code != 0 && !errors.Is(again, here) {
				t.Errorf("asked again it says %v, want the same denial", again)
			}
		})
	}
}

// agree compares what the run said with what Headroom's own check says of it.
func agree(t *testing.T, code int, here error, there enforcement.Extension) {
	t.Helper()
	if there.Err != nil {
		t.Fatal(there.Err)
	}
	if code == 0 {
		if here != nil || there.Decision != nil {
			t.Errorf("here %v, there %+v; want no denial", here, there.Decision)
		}
		return
	}
	denied := deniedBy(t, here)
	if denied.Code != code || there.Decision == nil {
		t.Fatalf("here %v, there %+v; want %d", here, there.Decision, code)
	}
	beside := []string{"DecidedAt", "PlanAsOf"} // clocks
	if code == 9006 {
		beside = append(beside, "Exhausted") // it was stopped before it was told of the tasks
	}
	if diff := cmp.Diff(*there.Decision, denied.Decision, cmpopts.IgnoreFields(schemas.DecisionMade{}, beside...),
		cmp.AllowUnexported(schemas.Limit{})); diff != "" {
		t.Errorf("decisions (-Headroom +run):\n%s", diff)
	}
}

func positive(n int64) *int64 {
	if n <= 0 {
		return nil
	}
	return &n
}

func TestARunsContextEndsAtThePlansLongestDuration(t *testing.T) {
	t.Parallel()
	newHeadroom(t, limits(func(l *schemas.Limits) { l.MaxExecutionDurationMinutes = schemas.LimitOf(1) }), time.Hour)
	// The engine's clock is a minute ahead of when it was asked, but for a moment.
	begun := time.Now()
	first := true
	run := admitted(t, engine(t, func(o *client.Options) {
		o.Now = func() time.Time {
			if first {
				return begun
			}
			return time.Now().Add(time.Minute - 100*time.Millisecond)
		}
	}), execution("e1"))
	first = false
	if at, bounded := run.Deadline(); !bounded || !at.Equal(begun.Add(time.Minute)) {
		t.Errorf("the deadline is %v, %v", at, bounded)
	}
	ctx, stop := run.Context(t.Context())
	defer stop()
	ended(t, ctx)
	if d := deniedBy(t, context.Cause(ctx)); d.Code != 9004 || d.Decision.Used != 2 {
		t.Errorf("it was stopped by %+v", d)
	}
	if d := deniedBy(t, run.Progress(t.Context())); d.Code != 9004 {
		t.Errorf("progress says %v", d)
	}
}

func TestARunsContextEndsWhenACheckSaysNo(t *testing.T) {
	t.Parallel()
	newHeadroom(t, limits(func(l *schemas.Limits) { l.MaxTasksPerExecution = schemas.LimitOf(2) }), time.Hour)
	run := admitted(t, engine(t, nil), execution("e1"))
	ctx, stop := run.Context(t.Context())
	defer stop()
	if err := errors.Join(run.Tasks(1), run.Tasks(2), ctx.Err()); err != nil {
		t.Fatal(err)
	}
	if err := run.Tasks(3); err == nil || !errors.Is(context.Cause(ctx), err) {
		t.Errorf("the check says %v, the context %v", err, context.Cause(ctx))
	}
	late, stopLate := run.Context(t.Context())
	defer stopLate()
	if d := deniedBy(t, context.Cause(late)); d.Code != 9003 {
		t.Errorf("a context of a stopped run ends with %v", d)
	}
}

func TestARunHearsWhatHeadroomSays(t *testing.T) {
	t.Parallel()
	h := newHeadroom(t, limits(func(l *schemas.Limits) { l.MaxTasksPerExecution = schemas.LimitOf(2) }), time.Hour)
	c := engine(t, nil)
	run, other := admitted(t, c, execution("e1")), admitted(t, c, execution("e2"))
	ctx, stop := run.Context(t.Context())
	defer stop()
	unharmed, stopOther := other.Context(t.Context())
	defer stopOther()
	// The server has seen the subscription when it has acknowledged what came after it.
	if err := run.Progress(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Somebody else counts the tasks of e1.
	tasks := int64(3)
	x := h.Extend(t.Context(), []enforcement.Progress{{WorkspaceID: "ws", ExecutionID: "e1", EventID: "1", EventSource: "counter", Tasks: &tasks}})[0]
	for _, body := range []string{"{", `{"kind":"runtime"}`} {
		h.tell(schemas.Topology{}.Decision("ws"), []byte(body))
	}
	h.publish(t.Context(), *x.Decision)
	ended(t, ctx)
	if d := deniedBy(t, context.Cause(ctx)); d.Code != 9003 || d.Decision.RequestEventSource != "counter" {
		t.Errorf("it was stopped by %+v", d)
	}
	if err := run.Payload(1); err == nil {
		t.Error("a check of a stopped run says yes")
	}
	if err := unharmed.Err(); err != nil {
		t.Errorf("the other run's context ended too: %v", context.Cause(unharmed))
	}
}

func TestALeaseIsKeptAliveWhileTheContextLives(t *testing.T) {
	t.Parallel()
	h := newHeadroom(t, limits(nil), 600*time.Millisecond)
	run := admitted(t, engine(t, nil), execution("e1"))
	ctx, stop := run.Context(t.Context())
	long := run.Decision().LeaseExpiresAt.Add(600 * time.Millisecond)
	until(t, func() (bool, any) { return time.Now().After(long), nil })
	h.await(1, 1)
	stop()
	if err := ctx.Err(); err == nil {
		t.Error("the context lives after stop")
	}
	h.await(1, 0)
}

func TestARepeatedAnswersLeaseIsMovedOnAtOnce(t *testing.T) {
	t.Parallel()
	h := newHeadroom(t, limits(nil), time.Hour)
	c := engine(t, nil)
	admitted(t, c, execution("e1"))
	run := admitted(t, c, execution("e1"))
	_, stop := run.Context(t.Context())
	defer stop()
	stream, err := h.js.Stream(t.Context(), schemas.Topology{}.Stream(schemas.StreamExecutions))
	if err != nil {
		t.Fatal(err)
	}
	until(t, func() (bool, any) {
		_, err := stream.GetLastMsgForSubject(t.Context(), schemas.Topology{}.Progressed("ws"))
		return err == nil, err
	})
}

func TestCompletingEndsTheContext(t *testing.T) {
	t.Parallel()
	newHeadroom(t, limits(nil), time.Hour)
	run := admitted(t, engine(t, nil), execution("e1"))
	ctx, stop := run.Context(t.Context())
	defer stop()
	if err := run.Complete(t.Context(), schemas.OutcomeFailed); err != nil {
		t.Fatal(err)
	}
	ended(t, ctx)
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		t.Errorf("it ended with %v", cause)
	}
}

func ended(t *testing.T, ctx context.Context) {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(patience):
		t.Fatal("the context did not end")
	}
}
