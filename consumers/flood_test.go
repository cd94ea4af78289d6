package consumers_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

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
