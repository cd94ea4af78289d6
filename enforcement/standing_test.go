package enforcement_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
)

func TestStandingsTellHowExecutionsStand(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil))
	live := h.admit(t, ask("live", "1"))
	h.admit(t, ask("over", "1"))
	h.release(t, "over", schemas.OutcomeFailed)
	h.admit(t, ask("expired", "1"))
	h.expire(t, "expired")
	h.release(t, "unheard-of", schemas.OutcomeCanceled)

	want := map[string]enforcement.Standing{
		"live":       {Known: true, Live: true, LeaseExpiresAt: *live.LeaseExpiresAt},
		"over":       {Known: true, Outcome: schemas.OutcomeFailed},
		"expired":    {Known: true},
		"unheard-of": {Known: true, Outcome: schemas.OutcomeCanceled},
		"never":      {},
	}
	var asked []enforcement.Execution
	for _, id := range []string{"live", "over", "expired", "unheard-of", "never"} {
		asked = append(asked, enforcement.Execution{WorkspaceID: "ws", ExecutionID: id}, enforcement.Execution{WorkspaceID: "other", ExecutionID: id})
	}
	for i, got := range h.Standings(t.Context(), asked) {
		expect := want[asked[i].ExecutionID]
		if asked[i].WorkspaceID == "other" {
			expect = enforcement.Standing{}
		}
		if diff := cmp.Diff(expect, got); diff != "" {
			t.Errorf("%s of %s (-want +got):\n%s", asked[i].ExecutionID, asked[i].WorkspaceID, diff)
		}
	}
}

func TestStandingsOfManyComeInTheirOrder(t *testing.T) {
	t.Parallel()
	h := newHouse(t, unlimited(nil))
	var asked []enforcement.Execution
	for i := range 600 {
		id := fmt.Sprintf("x%d", i)
		asked = append(asked, enforcement.Execution{WorkspaceID: "ws", ExecutionID: id})
		if i%7 == 0 {
			h.admit(t, ask(id, "1"))
		}
	}
	for i, got := range h.Standings(t.Context(), asked) {
		if got.Err != nil || got.Live != (i%7 == 0) || got.Known != got.Live {
			t.Fatalf("execution %d stands %+v", i, got)
		}
	}
}

func TestStandingsSayWhatCannotBeLookedUp(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	got := enforcement.New(enforcement.Options{Redis: client}).Standings(t.Context(), []enforcement.Execution{
		{WorkspaceID: "ws", ExecutionID: "x"}, {WorkspaceID: "ws", ExecutionID: "no id"},
	})
	if !errors.Is(got[0].Err, enforcement.ErrUnavailable) {
		t.Errorf("without Redis: %v", got[0].Err)
	}
	if got[1].Err == nil || errors.Is(got[1].Err, enforcement.ErrUnavailable) {
		t.Errorf("what is no id: %v", got[1].Err)
	}
}
