package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/enforcement/client"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

func TestAnAllowedExecutionRunsAndCompletes(t *testing.T) {
	t.Parallel()
	h := newHeadroom(t, limits(nil), time.Hour)
	c := engine(t, nil)
	e := execution("e1")
	e.Header = nats.Header{"traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}
	run := admitted(t, c, e)
	d := run.Decision()
	if !d.Allowed || d.PlanKey != "pro" || d.Used != 1 || d.ExecutionID != "e1" {
		t.Errorf("the decision is %+v", d)
	}
	if got := h.awaitRequests(1)[0].header.Get("traceparent"); got != e.Header.Get("traceparent") {
		t.Errorf("traceparent arrived as %q", got)
	}
	h.await(1, 1)
	for range 2 { // the second does nothing
		if err := run.Complete(t.Context(), schemas.OutcomeSucceeded); err != nil {
			t.Fatal(err)
		}
	}
	h.await(1, 0)
}

func TestADenialSaysWhy(t *testing.T) {
	t.Parallel()
	newHeadroom(t, limits(func(l *schemas.Limits) { l.MaxConcurrentExecutions = schemas.LimitOf(1) }), time.Hour)
	c := engine(t, nil)
	admitted(t, c, execution("e1"))
	_, err := c.Admit(t.Context(), execution("e2"))
	d := deniedBy(t, err)
	if d.Code != 9002 || d.Name != "PlanConcurrentExecutionLimitReached" || d.Limit != schemas.LimitConcurrentExecutions ||
		d.Message != "1 executions are running; plan pro allows 1 at once." || !d.Temporary() {
		t.Errorf("the denial is %+v", d)
	}
	if d.RetryAfter <= 0 || !d.ResetsAt.Equal(d.Decision.PeriodEnd) || d.Decision.ExecutionID != "e2" {
		t.Errorf("the denial is %+v", d)
	}
	if text := err.Error(); !strings.Contains(text, "execution e2 of workspace ws denied with 9002") {
		t.Errorf("the error reads %q", text)
	}
}

func TestALostReplyIsAskedForAgainAndChargedOnce(t *testing.T) {
	t.Parallel()
	h := newHeadroom(t, limits(nil), time.Hour)
	var lost atomic.Int32
	h.replies(func(a asked) {
		if lost.Add(1) > 2 {
			h.send(a)
		}
	})
	run := admitted(t, engine(t, nil), execution("e1"))
	if !run.Decision().Replayed {
		t.Error("the answer is not marked as a repeated one")
	}
	ids := map[string]bool{}
	for _, a := range h.awaitRequests(3) {
		ids[a.event.ID] = true
	}
	if len(ids) != 3 {
		t.Errorf("it asked with events %v, want three different ones", ids)
	}
	h.await(1, 1)
}

func TestALateReplyToTheFirstQuestionCounts(t *testing.T) {
	t.Parallel()
	h := newHeadroom(t, limits(nil), time.Hour)
	var first asked
	h.replies(func(a asked) {
		if first.event.ID == "" {
			first = a
			return
		}
		h.send(first)
	})
	run := admitted(t, engine(t, nil), execution("e1"))
	if got := run.Decision().RequestEventID; got != first.event.ID {
		t.Errorf("the answer is to %s, want the first one", got)
	}
}

func TestAnAllowCountsMoreThanADenialOfAnotherQuestion(t *testing.T) {
	t.Parallel()
	h := newHeadroom(t, limits(nil), time.Hour)
	var kept []asked
	h.replies(func(a asked) {
		if kept = append(kept, a); len(kept) < 2 {
			return
		}
		denial := kept[0]
		denial.decision = h.Unavailable(requestOf(denial), "away", time.Now().UTC())
		h.send(denial)
		h.send(kept[1])
	})
	admitted(t, engine(t, func(o *client.Options) { o.AskAgain = time.Second }), execution("e1"))
}

func TestADenialIsNotHeldUpByAQuestionWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	h := newHeadroom(t, limits(func(l *schemas.Limits) { l.MaxExecutions = schemas.LimitOf(0) }), time.Hour)
	var replies atomic.Int32
	h.replies(func(a asked) {
		if replies.Add(1) == 2 {
			h.send(a)
		}
	})
	begun := time.Now()
	_, err := engine(t, nil).Admit(t.Context(), execution("e1"))
	if d := deniedBy(t, err); d.Code != 9001 {
		t.Errorf("denied with %d", d.Code)
	}
	if took := time.Since(begun); took > client.DefaultTimeout/2 {
		t.Errorf("it took %s", took)
	}
}

func TestWithoutAnAnswerTheExecutionMustNotStart(t *testing.T) {
	t.Parallel()
	h := newHeadroom(t, limits(nil), time.Hour)
	h.replies(func(asked) {})
	c := engine(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	run, err := c.Admit(ctx, execution("e1"))
	if run != nil || !errors.Is(err, client.ErrUndecided) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, %v", run, err)
	}
	// The slot that was granted unheard waits for whoever asks again.
	h.await(1, 1)
	h.replies(h.send)
	admitted(t, c, execution("e1"))
	h.await(1, 1)
}

func TestWhatNobodyHeardIsGivenBackWhenNobodyWillAskAgain(t *testing.T) {
	t.Parallel()
	h := newHeadroom(t, limits(nil), time.Hour)
	h.replies(func(asked) {})
	c := engine(t, func(o *client.Options) { o.Timeout = 300 * time.Millisecond })
	once := execution("e1")
	once.Once = true
	if _, err := c.Admit(t.Context(), once); !errors.Is(err, client.ErrUndecided) {
		t.Fatalf("got %v", err)
	}
	h.await(0, 0)
	h.replies(h.send)
	if _, err := c.Admit(t.Context(), execution("e1")); !errors.Is(err, client.ErrOver) {
		t.Errorf("an execution that was given back came out as %v", err)
	}
	h.await(0, 0)
}

func TestAGivenBackExecutionTakesNoSlotWhenItsRequestComesLate(t *testing.T) {
	t.Parallel()
	h := newHeadroom(t, limits(nil), time.Hour)
	c := engine(t, nil)
	if err := c.Complete(t.Context(), client.Completion{WorkspaceID: "ws", ExecutionID: "e1", Outcome: schemas.OutcomeNotStarted}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Admit(t.Context(), execution("e1")); !errors.Is(err, client.ErrOver) {
		t.Errorf("it came out as %v", err)
	}
	h.await(0, 0)
}

func TestRepliesThatAnswerSomethingElseAreIgnored(t *testing.T) {
	t.Parallel()
	h := newHeadroom(t, limits(func(l *schemas.Limits) { l.MaxExecutions = schemas.LimitOf(0) }), time.Hour)
	h.replies(func(a asked) {
		allow := a.decision
		allow.Allowed, allow.Code, allow.Error, allow.Limit, allow.Exhausted = true, 0, "", "", nil
		expires := time.Now().Add(time.Hour).UTC()
		allow.LeaseExpiresAt = &expires
		for _, forge := range []func(*schemas.DecisionMade){
			func(d *schemas.DecisionMade) { d.WorkspaceID = "other" },
			func(d *schemas.DecisionMade) { d.ExecutionID = "other" },
			func(d *schemas.DecisionMade) { d.RequestEventID = "other" },
			func(d *schemas.DecisionMade) { d.RequestEventSource = "other" },
			func(d *schemas.DecisionMade) { d.Kind = schemas.KindRuntime },
		} {
			forged := allow
			forge(&forged)
			h.tell(a.inbox(), h.encode(forged))
		}
		for _, body := range []string{"", "{", `{"specversion":"1.0"}`, strings.Repeat("x", schemas.MaxBody+1)} {
			h.tell(a.inbox(), []byte(body))
		}
		h.tell(a.inbox()+"x", h.encode(allow)) // an address that nobody was given
		h.send(a)
	})
	_, err := engine(t, nil).Admit(t.Context(), execution("e1"))
	if d := deniedBy(t, err); d.Code != 9001 {
		t.Errorf("denied with %d", d.Code)
	}
}

func TestARepeatedReplyDisturbsNobody(t *testing.T) {
	t.Parallel()
	h := newHeadroom(t, limits(func(l *schemas.Limits) { l.MaxExecutions = schemas.LimitOf(1) }), time.Hour)
	h.replies(func(a asked) {
		for range 3 {
			h.send(a)
		}
	})
	c := engine(t, nil)
	admitted(t, c, execution("e1"))
	_, err := c.Admit(t.Context(), execution("e2"))
	if d := deniedBy(t, err); d.Decision.ExecutionID != "e2" {
		t.Errorf("it came out as %+v", d)
	}
}

func TestAShadowDenialDeniesNothing(t *testing.T) {
	t.Parallel()
	h := newHeadroom(t, limits(func(l *schemas.Limits) {
		l.MaxExecutions, l.MaxTasksPerExecution = schemas.LimitOf(0), schemas.LimitOf(1)
	}), time.Hour)
	h.shadow = true
	run := admitted(t, engine(t, nil), execution("e1"))
	if d := run.Decision(); !d.Shadow || d.Code != 9001 {
		t.Errorf("the decision is %+v", d)
	}
	if err := run.Tasks(100); err != nil {
		t.Errorf("a running execution was stopped in shadow: %v", err)
	}
}

func TestAnExecutionThatCannotBeAskedForIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	c := engine(t, nil)
	for _, e := range []client.Execution{{}, {WorkspaceID: "ws"}, {WorkspaceID: "w.s", ID: "e"}, {WorkspaceID: "ws", ID: "e", PayloadBytes: 1 << 62}} {
		var fault *schemas.DecodeError
		if _, err := c.Admit(t.Context(), e); !errors.As(err, &fault) {
			t.Errorf("%+v came out as %v", e, err)
		}
	}
}

func TestAnInstallationWithoutStreamsIsNamed(t *testing.T) {
	t.Parallel()
	c := engine(t, func(o *client.Options) { o.Timeout = time.Second })
	_, err := c.Admit(t.Context(), execution("e1"))
	if !errors.Is(err, client.ErrUndecided) || !strings.Contains(err.Error(), "no response from stream") {
		t.Errorf("it came out as %v", err)
	}
}

func TestACloseEndsWhatWaits(t *testing.T) {
	t.Parallel()
	h := newHeadroom(t, limits(nil), time.Hour)
	h.replies(func(asked) {})
	c := engine(t, nil)
	came := make(chan error, 1)
	go func() {
		_, err := c.Admit(t.Context(), execution("e1"))
		came <- err
	}()
	h.awaitRequests(1)
	c.Close()
	if err := <-came; !errors.Is(err, client.ErrClosed) {
		t.Errorf("it came out as %v", err)
	}
	if _, err := c.Request(t.Context(), execution("e2")); !errors.Is(err, client.ErrClosed) {
		t.Errorf("a closed client's request came out as %v", err)
	}
}

func TestAnEngineIsAnsweredAcrossALostConnection(t *testing.T) {
	t.Parallel()
	server := schematest.NATSServer(t)
	h := newHeadroom(t, limits(nil), time.Hour)
	var gone sync.Once
	h.replies(func(a asked) {
		lost := false
		gone.Do(func() { lost = true })
		if !lost {
			h.send(a)
		}
	})
	// Longer than the test: only the connection's return makes it ask again.
	c := engine(t, func(o *client.Options) { o.AskAgain = time.Hour })
	came := make(chan error, 1)
	go func() {
		_, err := c.Admit(t.Context(), execution("e1"))
		came <- err
	}()
	h.awaitRequests(1)
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-came:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatal("no answer after the connection was back")
	}
	h.await(1, 1)
}

func TestThousandsOfCallsShareOneClient(t *testing.T) {
	t.Parallel()
	const calls, room = 2000, 300
	h := newHeadroom(t, limits(func(l *schemas.Limits) { l.MaxExecutions = schemas.LimitOf(room) }), time.Hour)
	// Each asks once, so that the numbers below are exact.
	c := engine(t, func(o *client.Options) { o.AskAgain, o.Timeout = time.Minute, time.Minute })
	var allowed, denied atomic.Int32
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			_, err := c.Admit(t.Context(), execution(fmt.Sprint("e", i)))
			var no *client.Denied
			switch {
			case err == nil:
				allowed.Add(1)
			case errors.As(err, &no) && no.Code == 9001:
				denied.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if allowed.Load() != room || denied.Load() != calls-room {
		t.Errorf("%d were allowed and %d denied, want %d and %d", allowed.Load(), denied.Load(), room, calls-room)
	}
	h.await(room, room)
}
