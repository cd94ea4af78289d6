package consumers_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headroomhq/headroom/schemas"
)

// allowMany publishes that many allowing decisions at once.
func (b *books) allowMany(n int) {
	b.Helper()
	for i := range n {
		d := allowed(asking(fmt.Sprintf("x%04d", i)))
		m := body(b.world, d.DecisionID, d)
		if _, err := b.js.PublishAsync(b.topology.Decision("acme"), m); err != nil {
			b.Fatal(err)
		}
	}
	<-b.js.PublishAsyncComplete()
}

func TestAnEndInTheMiddleLeavesNothingOutOfTheLedger(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	const all = 6000
	b.allowMany(all)
	for at := int64(0); at < all; {
		r := b.start(&judge{}, b.keep)
		b.eventually("more is folded", func() bool { return r.Stats().Folded() > 0 || b.state().Used == all })
		b.halt(r)
		at = b.applied(schemas.StreamDecisions)
	}
	if got := b.state().Used; got != all {
		t.Errorf("the ledger has %d of %d executions", got, all)
	}
}

// applied is where the ledger stands in a stream.
func (b *books) applied(kind schemas.StreamKind) int64 {
	b.Helper()
	at, err := b.store.Applied(b.Context(), b.topology.Stream(kind))
	if err != nil {
		b.Fatal(err)
	}
	return int64(at)
}

func TestWhatTheLedgerRefusesWaitsForItsDeadLetter(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	deadLetters := b.topology.Stream(schemas.StreamDeadLetters)
	if err := b.js.DeleteStream(t.Context(), deadLetters); err != nil {
		t.Fatal(err)
	}
	b.deny("nul", func(d *schemas.DecisionMade) { d.Message = "no jsonb may hold \x00" })
	for i := range 20 {
		b.allow(fmt.Sprintf("x%02d", i))
	}
	heard := eavesdrop("keeping the ledger was interrupted")
	b.start(&judge{}, b.keep, heard.listen)
	heard.wait(t)
	if at := b.applied(schemas.StreamDecisions); at != 0 {
		t.Errorf("the ledger stands at %d, beyond what has no dead letter yet", at)
	}
	if _, err := b.topology.Ensure(t.Context(), b.js); err != nil {
		t.Fatal(err)
	}
	letter := b.await(schemas.StreamDeadLetters, 1)[0]
	if reason := letter.Header.Get("Headroom-Reason"); !strings.HasPrefix(reason, "refused by the ledger") {
		t.Errorf("the dead letter's reason is %q", reason)
	}
	b.folded()
	if got := b.state().Used; got != 20 {
		t.Errorf("the ledger has %d executions, want 20", got)
	}
}
