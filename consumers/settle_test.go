package consumers_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// outcome is what became of one message.
type outcome struct {
	Acknowledged, Deferred, Retried, Dead int64
	Reason                                string // of the dead letter, its beginning
}

func TestWhatBecomesOfAMessage(t *testing.T) {
	t.Parallel()
	const attempts = 3
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		release func(n int) error // at the n-th attempt, from 1; it may panic
		want    outcome
	}{
		"handled": {
			func(int) error { return nil },
			outcome{Acknowledged: 1},
		},
		"put off while a service is away, however often": {
			func(n int) error {
				if n <= 2*attempts {
					return fmt.Errorf("redis: %w", enforcement.ErrUnavailable)
				}
				return nil
			},
			outcome{Acknowledged: 1, Deferred: 2 * attempts},
		},
		"failed and tried again": {
			func(n int) error {
				if n < attempts {
					return broken
				}
				return nil
			},
			outcome{Acknowledged: 1, Retried: attempts - 1},
		},
		"given up after its attempts": {
			func(int) error { return broken },
			outcome{Retried: attempts - 1, Dead: 1, Reason: "gave up after 3 attempts: broken"},
		},
		"a panic is a failure": {
			func(int) error { panic("sur\nprise") },
			outcome{Retried: attempts - 1, Dead: 1, Reason: "gave up after 3 attempts: handler panicked: sur prise"},
		},
		"attempts do not count while a service is away": {
			func(n int) error {
				switch {
				case n%2 == 0 && n < 3*attempts:
					return enforcement.ErrUnavailable
				case n < attempts:
					return broken
				}
				return nil
			},
			outcome{Acknowledged: 1, Deferred: 1, Retried: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			n := 0
			j := &judge{release: func(enforcement.Completion) enforcement.Release {
				n++
				return enforcement.Release{Err: test.release(n)}
			}}
			r := w.start(j, func(o *consumers.Options) { o.MaxAttempts = attempts })
			w.complete("acme", "x", schemas.OutcomeSucceeded)
			w.settled("completed")
			s := w.counts(r)
			got := outcome{Acknowledged: s.Acknowledged(), Deferred: s.Deferred(), Retried: s.Retried(), Dead: s.DeadLettered()}
			if letters := w.stored(schemas.StreamDeadLetters); len(letters) == 1 {
				got.Reason = letters[0].Header.Get("Headroom-Reason")
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("what became of it (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOnePoisonedMessageSparesItsBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 20 {
		w.complete("acme", fmt.Sprintf("x%02d", i), schemas.OutcomeSucceeded)
	}
	j := &judge{release: func(c enforcement.Completion) enforcement.Release {
		if c.ExecutionID == "x07" {
			panic("poison")
		}
		return enforcement.Release{Known: true}
	}}
	r := w.start(j, func(o *consumers.Options) { o.MaxAttempts = 2 })
	letters := w.await(schemas.StreamDeadLetters, 1)
	w.settled("completed")
	if got := letters[0].Header.Get("Headroom-Sequence"); got != "8" {
		t.Errorf("the dead letter is of sequence %s, want 8", got)
	}
	if s := w.counts(r); s.Acknowledged() != 19 || s.DeadLettered() != 1 {
		t.Errorf("acknowledged %d, dead %d, want 19 and 1", s.Acknowledged(), s.DeadLettered())
	}
}

func TestAContradictingCompletionIsCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	j := &judge{release: func(enforcement.Completion) enforcement.Release {
		return enforcement.Release{Known: true, Prior: schemas.OutcomeSucceeded}
	}}
	r := w.start(j)
	w.complete("acme", "same", schemas.OutcomeSucceeded)
	w.complete("acme", "other", schemas.OutcomeNotStarted)
	w.settled("completed")
	if got := w.counts(r).Contradictions(); got != 1 {
		t.Errorf("%d contradictions, want 1", got)
	}
}

func TestProgressPublishesDenialsOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	away := true
	j := &judge{extend: func(p enforcement.Progress) enforcement.Extension {
		switch p.ExecutionID {
		case "over":
			if away {
				away = false
				return enforcement.Extension{Err: enforcement.ErrUnavailable}
			}
			d := denied(enforcement.Request{WorkspaceID: p.WorkspaceID, ExecutionID: p.ExecutionID, EventID: p.EventID, EventSource: p.EventSource},
				9003, "Too many tasks.", p.At)
			d.Kind = schemas.KindRuntime
			return enforcement.Extension{Live: true, Decision: &d}
		case "unknown":
			return enforcement.Extension{}
		default:
			return enforcement.Extension{Live: true}
		}
	}}
	r := w.start(j)
	tasks := int64(99)
	for _, execution := range []string{"fine", "over", "unknown"} {
		w.publish(w.topology.Progressed("acme"), body(w, "step-"+execution,
			schemas.ExecutionProgressed{WorkspaceID: "acme", ExecutionID: execution, Tasks: &tasks}))
	}
	got := w.decisions(1)
	w.settled("progressed")
	if n := w.count(schemas.StreamDecisions); n != 1 || got[0].ExecutionID != "over" || got[0].Kind != schemas.KindRuntime || got[0].Code != 9003 {
		t.Errorf("%d decisions, the first %+v, want one runtime 9003 for over", n, got[0])
	}
	if s := w.counts(r); s.Acknowledged() != 3 || s.Deferred() < 1 {
		t.Errorf("acknowledged %d, deferred %d, want 3 and at least 1", s.Acknowledged(), s.Deferred())
	}
}

func TestALostConsumerEndsTheRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made, err := consumers.New(consumers.Options{NATS: w.nats, JetStream: w.js, Enforcer: &judge{}})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- made.Run(t.Context()) }()
	w.eventually("ready", made.Ready)
	if err := w.js.DeleteConsumer(t.Context(), w.topology.Stream(schemas.StreamExecutions), "progressed"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "consume progressed") {
		t.Errorf("run ended with %v, want an error that names the consumer", err)
	}
	if made.Ready() {
		t.Error("still ready after its end")
	}
}

func TestAConsumerLostUnnoticedEndsTheRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made, err := consumers.New(consumers.Options{NATS: w.nats, JetStream: w.js, Enforcer: &judge{}, Log: schematest.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	server := schematest.NATSServer(t)
	ended := make(chan error, 1)
	go func() { ended <- made.Run(t.Context()) }()
	w.eventually("ready", made.Ready)
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.eventually("consumer deleted", func() bool {
		return w.js.DeleteConsumer(t.Context(), w.topology.Stream(schemas.StreamExecutions), "progressed") == nil
	})
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "consume progressed") {
			t.Errorf("run ended with %v, want an error that names the consumer", err)
		}
	case <-time.After(patience):
		t.Fatal("the run goes on without its consumer")
	}
}
