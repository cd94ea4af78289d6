package replay_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/cmd/headroom/replay"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// bench is a door, and the other side of it: streams and consumers without a
// Headroom, whose part the test plays.
type bench struct {
	js        jetstream.JetStream
	door      *replay.Door
	overheard chan schemas.DecisionMade
}

func openBench(t *testing.T, patience time.Duration) bench {
	t.Helper()
	js, err := jetstream.New(schematest.NATS(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (schemas.Topology{}).Ensure(t.Context(), js); err != nil {
		t.Fatal(err)
	}
	b := bench{js: js, overheard: make(chan schemas.DecisionMade, 10)}
	b.door, err = replay.OpenDoor(t.Context(), replay.DoorOptions{
		JetStream: js, Patience: patience, Overheard: func(d schemas.DecisionMade) { b.overheard <- d },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.door.Close)
	return b
}

// settle takes the next message of a consumer, publishes the decisions on it,
// and only then acknowledges it.
func (b bench) settle(t *testing.T, consumer string, decisions ...schemas.DecisionMade) <-chan error {
	t.Helper()
	settled := make(chan error, 1)
	go func() { settled <- b.settleNext(t.Context(), consumer, decisions) }()
	return settled
}

func (b bench) settleNext(ctx context.Context, name string, decisions []schemas.DecisionMade) error {
	consumer, err := b.js.Consumer(ctx, "HEADROOM_EXECUTIONS", name)
	if err != nil {
		return err
	}
	message, err := consumer.Next(jetstream.FetchMaxWait(time.Minute))
	if err != nil {
		return err
	}
	for _, d := range decisions {
		body, err := schemas.Encode(schemas.NewEvent("test", d.DecisionID, time.Now(), d))
		if err != nil {
			return err
		}
		if _, err := b.js.Publish(ctx, "headroom.decisions."+d.WorkspaceID, body); err != nil {
			return err
		}
	}
	return message.DoubleAck(ctx)
}

// await receives what has to come.
func await[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(time.Minute):
		t.Fatal("nothing came within a minute")
		panic("unreachable")
	}
}

// answerTo is a decision on the event of that source and id.
func answerTo(source, id string) schemas.DecisionMade {
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	return schemas.DecisionMade{
		DecisionID: id + "-decision", Kind: schemas.KindAdmission, WorkspaceID: "bakery", ExecutionID: "one",
		RequestEventID: id, RequestEventSource: source, Allowed: true, Message: "Allowed.", Exhausted: []string{},
		PlanKey: "free", PeriodStart: at, PeriodEnd: at.AddDate(0, 1, 0), Limits: small, Exact: true, PlanAsOf: at, DecidedAt: at,
	}
}

func request(id string) schemas.Event[schemas.ExecutionRequested] {
	return schemas.NewEvent("trace/kiln", id, time.Now(), schemas.ExecutionRequested{WorkspaceID: "bakery", ExecutionID: "one"})
}

func progress(id string) schemas.Event[schemas.ExecutionProgressed] {
	return schemas.NewEvent("trace/kiln", id, time.Now(), schemas.ExecutionProgressed{WorkspaceID: "bakery", ExecutionID: "one"})
}

func completion(id string) schemas.Event[schemas.ExecutionCompleted] {
	return schemas.NewEvent("trace/kiln", id, time.Now(), schemas.ExecutionCompleted{
		WorkspaceID: "bakery", ExecutionID: "one", Outcome: schemas.OutcomeSucceeded,
	})
}

func TestDoorTellsItsOwnDecisionFromOthers(t *testing.T) {
	t.Parallel()
	b := openBench(t, time.Minute)
	if _, err := b.js.Publish(t.Context(), "headroom.decisions.bakery", []byte("no decision at all")); err != nil {
		t.Fatal(err)
	}
	own := answerTo("trace/kiln", "r1")
	settled := b.settle(t, schemas.ConsumerRequested, answerTo("trace/other", "r1"), answerTo("trace/kiln", "r2"), own, own)
	got, err := b.door.Request(t.Context(), request("r1"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(own, got, cmp.AllowUnexported(schemas.Limit{})); diff != "" {
		t.Errorf("decision (-want +got):\n%s", diff)
	}
	if err := await(t, settled); err != nil {
		t.Fatal(err)
	}
	var heard []string
	for range 3 {
		d := await(t, b.overheard)
		heard = append(heard, d.RequestEventSource+" "+d.RequestEventID)
	}
	if diff := cmp.Diff([]string{"trace/other r1", "trace/kiln r2", "trace/kiln r1"}, heard); diff != "" {
		t.Errorf("overheard, a second decision included (-want +got):\n%s", diff)
	}
}

func TestDoorWaitsUntilAnEventIsSettled(t *testing.T) {
	t.Parallel()
	b := openBench(t, time.Minute)
	denial := answerTo("trace/kiln", "p1")
	denial.Kind, denial.Allowed, denial.Code, denial.Error = schemas.KindRuntime, false, 9003, "PlanTaskPerExecutionLimitReached"
	settled := b.settle(t, schemas.ConsumerProgressed, denial)
	got, err := b.door.Progress(t.Context(), progress("p1"))
	if err != nil || got == nil || got.Code != 9003 {
		t.Errorf("got %+v, %v; want the decision that came before the acknowledgement", got, err)
	}
	if err := await(t, settled); err != nil {
		t.Fatal(err)
	}
	settled = b.settle(t, schemas.ConsumerProgressed)
	if got, err := b.door.Progress(t.Context(), progress("p2")); got != nil || err != nil {
		t.Errorf("got %+v, %v; want no decision", got, err)
	}
	if err := await(t, settled); err != nil {
		t.Fatal(err)
	}
	settled = b.settle(t, schemas.ConsumerCompleted)
	if err := b.door.Complete(t.Context(), completion("c1")); err != nil {
		t.Error(err)
	}
	if err := await(t, settled); err != nil {
		t.Fatal(err)
	}
}

func TestDoorGivesUpOnWhatNobodyAnswers(t *testing.T) {
	t.Parallel()
	b := openBench(t, 50*time.Millisecond)
	if _, err := b.door.Request(t.Context(), request("r1")); !errors.Is(err, replay.ErrNoDecision) {
		t.Errorf("request: got %v, want ErrNoDecision", err)
	}
	if _, err := b.door.Progress(t.Context(), progress("p1")); !errors.Is(err, replay.ErrNotApplied) {
		t.Errorf("progress: got %v, want ErrNotApplied", err)
	}
	if err := b.door.Complete(t.Context(), completion("c1")); !errors.Is(err, replay.ErrNotApplied) {
		t.Errorf("completion: got %v, want ErrNotApplied", err)
	}
	if _, err := b.door.Request(t.Context(), schemas.Event[schemas.ExecutionRequested]{}); err == nil {
		t.Error("an event without anything in it was sent")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := b.door.Request(ended, request("r2")); !errors.Is(err, context.Canceled) {
		t.Errorf("request after the end: got %v, want context.Canceled", err)
	}
}

func TestDoorNeedsTheStreams(t *testing.T) {
	t.Parallel()
	js, err := jetstream.New(schematest.NATS(t))
	if err != nil {
		t.Fatal(err)
	}
	_, err = replay.OpenDoor(t.Context(), replay.DoorOptions{JetStream: js})
	if !errors.Is(err, jetstream.ErrStreamNotFound) || !strings.Contains(err.Error(), "stream of decisions") {
		t.Errorf("got %v, want it to name what is missing", err)
	}
}

func TestASecondDecisionIsNeverTakenForTheFirst(t *testing.T) {
	t.Parallel()
	f := replay.NewFeed()
	answer := f.Expect("trace/kiln", "r1")
	own := answerTo("trace/kiln", "r1")
	if !f.Hand(own) {
		t.Fatal("the decision was not handed to who expects it")
	}
	await(t, answer)
	if f.Hand(own) {
		t.Error("a second decision vanished in a channel that nobody reads any more")
	}
}
