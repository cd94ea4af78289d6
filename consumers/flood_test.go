package consumers_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
)

func TestLargeMessagesMakeSmallBatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n, padding, most = 400, 60 << 10, 8 << 20
	for i := range n {
		ask := requestBody(w, "acme", fmt.Sprintf("x%03d", i), nil)
		w.publish(w.topology.Requested("acme"),
			bytes.Replace(ask, []byte("{"), []byte(`{"padding":"`+strings.Repeat("x", padding)+`",`), 1))
	}
	enough := make(chan struct{})
	j := &judge{admit: func(r enforcement.Request) enforcement.Result {
		<-enough
		return enforcement.Result{Decision: allowed(r)}
	}}
	w.start(j, func(o *consumers.Options) { o.Workers = 1 })
	consumer, err := w.js.Consumer(t.Context(), w.topology.Stream(schemas.StreamExecutions), "requested")
	if err != nil {
		t.Fatal(err)
	}
	w.eventually("half is delivered", func() bool {
		info, err := consumer.Info(t.Context())
		return err == nil && info.NumAckPending >= n/2
	})
	close(enough)
	w.decisions(n)
	w.settled("requested")
	j.mu.Lock()
	defer j.mu.Unlock()
	if largest := slices.Max(j.batches); largest*padding > most {
		t.Errorf("a batch has %d messages of %d KiB, more than %d MiB", largest, padding>>10, most>>20)
	}
}

func TestAThousandPoisonMessagesHoldUpNobody(t *testing.T) {
	t.Parallel()
	const poison = 1000
	for name, test := range map[string]struct {
		body func(w *world, i int) []byte
	}{
		"no events": {func(_ *world, i int) []byte { return fmt.Appendf(nil, "nonsense %d", i) }},
		"events that panic": {func(w *world, i int) []byte {
			return requestBody(w, "acme", fmt.Sprintf("poison-%d", i), nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for i := range poison {
				w.publish(asked, test.body(w, i))
			}
			w.request("acme", "good")
			j := &judge{admit: func(r enforcement.Request) enforcement.Result {
				if r.ExecutionID != "good" {
					panic("poison")
				}
				return enforcement.Result{Decision: allowed(r)}
			}}
			begun := time.Now()
			r := w.start(j, func(o *consumers.Options) { o.MaxAttempts, o.Log = 3, nil })
			if got := w.decisions(1)[0].ExecutionID; got != "good" {
				t.Errorf("the decision is on %s", got)
			}
			took := time.Since(begun)
			w.await(schemas.StreamDeadLetters, poison)
			w.settled("requested")
			t.Logf("answered after %s, all settled after %s", took, time.Since(begun))
			if took > poisonDelay {
				t.Errorf("the good one waited %s, at most %s may pass", took, poisonDelay)
			}
			if s := w.counts(r); s.Acknowledged() != 1 || s.DeadLettered() != poison {
				t.Errorf("acknowledged %d, dead %d, want 1 and %d", s.Acknowledged(), s.DeadLettered(), poison)
			}
			if n := w.count(schemas.StreamDecisions); n != 1 {
				t.Errorf("%d decisions, want 1", n)
			}
		})
	}
}

// poisonDelay is what a thousand messages that cannot be handled may cost those behind
// them, with the race detector on a machine that does much else. It is far below the ack
// wait, which is what one costs that nobody settles.
const poisonDelay = 10 * time.Second
