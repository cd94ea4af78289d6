package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
)

func TestServeMakesStreamsAnewThatTheServerLost(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("plans", "apply", demoCatalog)
	s := i.serve()
	s.awaitStatus(http.StatusOK)
	js := i.jetStream()
	i.decide(js, "ws", "before")
	for _, name := range []string{"HEADROOM_DECISIONS", "HEADROOM_PLANS"} {
		if err := js.DeleteStream(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	i.must("workspaces", "assign", "ws", "--plan", "pro")
	s.log.await(t, "stream is gone and is made anew, what it held is lost")
	awaitStream(t, js, "HEADROOM_DECISIONS")
	awaitPlan(t, i, "ws", func(d schemas.DecisionMade) bool { return d.PlanKey == "pro" })
}

func awaitStream(t *testing.T, js jetstream.JetStream, name string) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(patience)
	for {
		_, err := js.Stream(t.Context(), name)
		if err == nil {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("stream %s: %v", name, err)
		}
	}
}
