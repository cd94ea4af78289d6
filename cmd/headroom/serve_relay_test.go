package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

func TestServePublishesWhatATransactionWroteToTheOutbox(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("plans", "apply", demoCatalog)
	s := i.serve()
	s.awaitStatus(http.StatusOK)
	heard := make(chan *nats.Msg, 1)
	if _, err := schematest.NATS(t).ChanSubscribe(schemas.Topology{}.Invalidated("ws_news"), heard); err != nil {
		t.Fatal(err)
	}
	const id = "0198c0de-0000-7000-8000-000000000001"
	_, err := schematest.Postgres(t).Exec(t.Context(), `INSERT INTO outbox (id, workspace_id, subject_kind, body) VALUES
		($1, 'ws_news', 'plan.invalidated', '{"workspace_id": "ws_news", "plan_revision": 7, "reason": "test"}')`, id)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case m := <-heard:
		e, err := schemas.Decode[schemas.PlanInvalidated](m.Subject, m.Data)
		if err != nil || e.ID != id || e.Data.PlanRevision != 7 || m.Header.Get("Nats-Msg-Id") != id {
			t.Errorf("heard %+v with the message id %q, %v", e, m.Header.Get("Nats-Msg-Id"), err)
		}
	case <-time.After(patience):
		t.Error("nothing was published")
	}
	if err := s.end(); err != nil {
		t.Errorf("serve ended with %v, want nil", err)
	}
}
