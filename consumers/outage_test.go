package consumers_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

func TestAnOutageOfRedisLeaksNothing(t *testing.T) {
	t.Parallel()
	server := schematest.DurableRedisServer(t)
	address, err := redis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(address)
	t.Cleanup(func() { _ = client.Close() })
	w := wholeOver(t, client, subscriptions.StoreOptions{})
	r := w.start(w.enforcer, w.keep, func(o *consumers.Options) { o.UnavailableBudget = 500 * time.Millisecond })

	const before, during = 5, 10
	for i := range before {
		w.request("limited", fmt.Sprintf("before-%d", i))
	}
	w.decisions(before)
	unheard := enforcement.Request{WorkspaceID: "limited", ExecutionID: "during-0", EventID: "ask-during-0", EventSource: "test"}
	if got := w.enforcer.Admit(t.Context(), []enforcement.Request{unheard})[0]; got.Err != nil || !got.Decision.Allowed {
		t.Fatalf("the allow that nobody hears of: %+v", got)
	}

	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	for i := range before {
		w.complete("limited", fmt.Sprintf("before-%d", i), schemas.OutcomeSucceeded)
	}
	for i := range during {
		w.request("limited", fmt.Sprintf("during-%d", i))
	}
	for _, d := range w.decisions(before + during)[before:] {
		if d.Code != enforcement.CodeUnavailable {
			t.Errorf("execution %s was decided with %d while Redis was away, want 9008", d.ExecutionID, d.Code)
		}
	}

	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.settled("requested")
	w.settled("completed")
	w.request("limited", "during-0") // the same event again keeps its answer
	w.settled("requested")
	w.folded()
	redis, folded := w.outstanding("limited")
	if redis.Used != before || redis.Running != 0 || folded.Used != before || len(folded.Leases) != 0 {
		t.Errorf("Redis has used %d, running %d, the ledger %d and %d leases, want %d, 0, %d, 0",
			redis.Used, redis.Running, folded.Used, len(folded.Leases), before, before)
	}
	if n := w.count(schemas.StreamDecisions); n != before+during {
		t.Errorf("%d decisions stored, want %d", n, before+during)
	}
	if s := w.counts(r); s.Withdrawn() != during || s.DeadLettered() != 0 {
		t.Errorf("withdrawn %d, dead %d, want %d and 0", s.Withdrawn(), s.DeadLettered(), during)
	}
}
