package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

func TestServeTellsOfAnAssignmentThatWasMadeWhileNATSWasAway(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("plans", "apply", demoCatalog)
	i.with(map[string]string{"HEADROOM_NATS_URL": "nats://127.0.0.1:1"}).must("workspaces", "assign", "ws_news", "--plan", "pro")
	heard := make(chan *nats.Msg, 8)
	for _, subject := range []string{schemas.Topology{}.Renewed("ws_news"), schemas.Topology{}.Invalidated("ws_news")} {
		if _, err := schematest.NATS(t).ChanSubscribe(subject, heard); err != nil {
			t.Fatal(err)
		}
	}
	s := i.serve()
	s.awaitStatus(http.StatusOK)
	next := func() *nats.Msg {
		select {
		case m := <-heard:
			return m
		case <-time.After(patience):
			t.Fatal("nothing was published")
			return nil
		}
	}
	m := next()
	renewed, err := schemas.Decode[schemas.SubscriptionRenewed](m.Subject, m.Data)
	if err != nil || renewed.Data.Kind != "created" || renewed.Data.PlanKey != "pro" || m.Header.Get("Nats-Msg-Id") != renewed.ID {
		t.Errorf("first heard %+v, %v; want the period that was created", renewed, err)
	}
	m = next()
	invalidated, err := schemas.Decode[schemas.PlanInvalidated](m.Subject, m.Data)
	if err != nil || invalidated.Data.PlanRevision != 1 || m.Header.Get("Nats-Msg-Id") != invalidated.ID {
		t.Errorf("then heard %+v, %v; want that revision 1 holds", invalidated, err)
	}
	if err := s.end(); err != nil {
		t.Errorf("serve ended with %v, want nil", err)
	}
}
