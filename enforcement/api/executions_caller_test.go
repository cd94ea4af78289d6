package api_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/schemas"
)

func TestWhoHangsUpTakesNothingFromTheOthers(t *testing.T) {
	t.Parallel()
	gate := newGate()
	h := newHouse(t, limits(nil, nil), func(o *api.ExecutionsOptions) { o.Flights = 1; gate.guard(o) })
	ctx, hangUp := context.WithCancel(t.Context())
	answered := make(chan error, 3)
	ask := func(ctx context.Context, execution string) {
		_, err := h.Admit(ctx, asking(execution, "e"))
		answered <- err
	}
	go ask(ctx, "begun")
	gate.reached(t)
	go ask(ctx, "waiting")
	go ask(t.Context(), "patient")
	h.eventually("all wait", func() bool { return h.Waiting() == 3 })
	hangUp()
	for range 2 {
		if err := <-answered; !errors.Is(err, context.Canceled) || !errors.Is(err, enforcement.ErrUnavailable) {
			t.Errorf("who hung up hears %v", err)
		}
	}
	gate.open()
	if err := <-answered; err != nil {
		t.Errorf("who waited on hears %v", err)
	}
	var got []string
	for _, d := range h.decisions() {
		got = append(got, d.ExecutionID)
	}
	if strings.Join(got, ", ") != "begun, patient" {
		t.Errorf("decisions stored of %q, want of those who were asked for", got)
	}
}

func TestTooManyCallersAreTurnedAway(t *testing.T) {
	t.Parallel()
	gate := newGate()
	h := newHouse(t, limits(nil, nil), func(o *api.ExecutionsOptions) { o.MaxWaiting = 2; gate.guard(o) })
	answered := make(chan error, 2)
	for i := range 2 {
		go func() {
			_, err := h.Admit(t.Context(), asking(fmt.Sprintf("x%d", i), "e"))
			answered <- err
		}()
	}
	h.eventually("two wait", func() bool { return h.Waiting() == 2 })
	_, err := h.Admit(t.Context(), asking("third", "e"))
	if !errors.Is(err, api.ErrBusy) || !errors.Is(err, enforcement.ErrUnavailable) {
		t.Errorf("the third hears %v, want ErrBusy and ErrUnavailable", err)
	}
	gate.reached(t)
	gate.open()
	for range 2 {
		if err := <-answered; err != nil {
			t.Errorf("who was let in hears %v", err)
		}
	}
	if s := h.Stats(); s.Busy() != 1 || s.Unavailable() != 1 || s.Allowed() != 2 {
		t.Errorf("%d busy, %d unavailable, %d allowed, want 1, 1 and 2", s.Busy(), s.Unavailable(), s.Allowed())
	}
}

func TestADrainAnswersWhoIsInside(t *testing.T) {
	t.Parallel()
	gate := newGate()
	h := newHouse(t, limits(nil, nil))
	o, closeAll, err := optionsOver(h.js, h.enforcer)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll()
	gate.guard(&o)
	door := api.NewExecutions(o)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- door.Run(ctx) }()
	answered := make(chan error, 1)
	go func() {
		_, err := door.Admit(t.Context(), asking("inside", "e"))
		answered <- err
	}()
	gate.reached(t)
	stop()
	h.eventually("nobody is let in", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := door.Admit(ctx, asking("outside", "e"))
		return errors.Is(err, enforcement.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded)
	})
	gate.open()
	if err := <-answered; err != nil {
		t.Errorf("who was inside hears %v", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the drain ends with %v", err)
	}
	if _, err := door.Admit(t.Context(), asking("outside", "e")); !errors.Is(err, enforcement.ErrUnavailable) {
		t.Errorf("after the drain: %v", err)
	}
}

func TestADenialThatTheStreamHoldsStands(t *testing.T) {
	t.Parallel()
	h := newHouse(t, limits(ptr[int64](1), nil))
	h.admit("first", "e")
	denial := h.admit("second", "e")
	if denial.Code != enforcement.CodeExecutionQuota {
		t.Fatalf("code %d", denial.Code)
	}
	if err := h.redis.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	again := h.admit("second", "e")
	if again.Code != denial.Code || again.DecisionID != denial.DecisionID || !again.DecidedAt.Equal(denial.DecidedAt) {
		t.Errorf("answered with %+v, want the denial that was published", again)
	}
	if got := h.outstanding(); got.Used != 0 || got.Running != 0 || h.Stats().Withdrawn() != 1 {
		t.Errorf("%d used, %d run, %d withdrawn; want the allow taken back", got.Used, got.Running, h.Stats().Withdrawn())
	}
}

func TestTheTraceOfACallerTravelsWithTheDecision(t *testing.T) {
	t.Parallel()
	h := newHouse(t, limits(nil, nil))
	traced := api.WithTrace(t.Context(), map[string][]string{"Traceparent": {"00-a"}, "Cookie": {"x"}})
	if _, err := h.Admit(traced, asking("x", "e")); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Complete(traced, enforcement.Completion{WorkspaceID: "ws", ExecutionID: "x", Outcome: "succeeded"}, nil, ""); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []schemas.StreamKind{schemas.StreamDecisions, schemas.StreamExecutions} {
		header := h.stored(kind)[0].Headers()
		if header.Get("traceparent") != "00-a" || header.Get("Cookie") != "" || header.Get(nats.MsgIdHdr) == "" {
			t.Errorf("headers in %s: %v", kind, header)
		}
	}
}
