package schemas_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/schemas"
)

// writer is one over a server with Headroom's streams, which read lets a test look into.
func writer(t *testing.T, shadow bool) (w *schemas.DecisionWriter, read func(sequence uint64) *nats.Msg) {
	t.Helper()
	p, js := publisher(t, schemas.PublisherOptions{})
	stream, err := js.Stream(t.Context(), schemas.Topology{}.Stream(schemas.StreamDecisions))
	if err != nil {
		t.Fatal(err)
	}
	w = schemas.NewDecisionWriter(schemas.DecisionWriterOptions{Store: p, Stored: stream, Shadow: shadow})
	return w, func(sequence uint64) *nats.Msg {
		t.Helper()
		raw, err := stream.GetMsg(t.Context(), sequence)
		if err != nil {
			t.Fatal(err)
		}
		return &nats.Msg{Subject: raw.Subject, Header: raw.Header, Data: raw.Data}
	}
}

func TestTheDecisionThatWasStoredFirstStands(t *testing.T) {
	t.Parallel()
	w, read := writer(t, false)
	first, second := denied(), allowed()
	second.DecisionID = first.DecisionID
	about := nats.Header{"Traceparent": {"00-a"}, "other": {"x"}}
	for i, d := range []schemas.DecisionMade{first, second} {
		got := w.Write(t.Context(), []schemas.OutgoingDecision{{Decision: d, About: about}})[0]
		if got.Err != nil || got.Duplicate != (i == 1) || got.Stands.Admits() {
			t.Errorf("write %d: duplicate %t, admits %t, error %v; want the denial to stand", i, got.Duplicate, got.Stands.Admits(), got.Err)
		}
		if diff := cmp.Diff(string(read(1).Data), string(got.Body)); diff != "" {
			t.Errorf("write %d: the body is not the stored one (-stored +got):\n%s", i, diff)
		}
	}
	m := read(1)
	if m.Header.Get("traceparent") != "00-a" || m.Header.Get("other") != "" || m.Header.Get(nats.MsgIdHdr) != first.DecisionID {
		t.Errorf("headers %v, want the trace and the decision's id, and nothing else of the request", m.Header)
	}
	event, err := schemas.Decode[schemas.DecisionMade](m.Subject, m.Data)
	if err != nil || event.ID != first.DecisionID || event.Source != schemas.SourceHeadroom {
		t.Errorf("stored event %q of %q, %v", event.ID, event.Source, err)
	}
}

func TestAShadowDeniesNothing(t *testing.T) {
	t.Parallel()
	w, _ := writer(t, true)
	got := w.Write(t.Context(), []schemas.OutgoingDecision{{Decision: denied()}})[0]
	if got.Err != nil || !got.Stands.Allowed || !got.Stands.Shadow || got.Stands.Code != denied().Code || got.Stands.Admits() {
		t.Errorf("a denial in the shadow stands as %+v, %v", got.Stands, got.Err)
	}
}

func TestADecisionAtFaultLeavesTheOthers(t *testing.T) {
	t.Parallel()
	w, _ := writer(t, false)
	wrong := allowed()
	wrong.WorkspaceID = "not an id"
	got := w.Write(t.Context(), []schemas.OutgoingDecision{{Decision: wrong}, {Decision: denied()}})
	var fault *schemas.DecodeError
	if !errors.As(got[0].Err, &fault) {
		t.Errorf("a workspace that is no id is written: %v", got[0].Err)
	}
	if got[1].Err != nil || got[1].Stands.DecisionID != denied().DecisionID {
		t.Errorf("the decision beside it: %+v", got[1])
	}
}
