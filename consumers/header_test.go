package consumers_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/schemas"
)

func TestTheTraceTravelsWithTheDecision(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(&judge{})
	long := strings.Repeat("x", 65_460) // a stream takes headers of 64 KiB
	for i, test := range []struct{ sent, want nats.Header }{
		{nats.Header{"traceparent": {"00-a"}, "tracestate": {"b=c"}}, nats.Header{"traceparent": {"00-a"}, "tracestate": {"b=c"}}},
		{nats.Header{"Traceparent": {"00-a"}, "TRACESTATE": {"b=c"}}, nats.Header{"traceparent": {"00-a"}, "tracestate": {"b=c"}}},
		{nats.Header{"traceparent": {"00-a", "00-b"}, "other": {"x"}}, nats.Header{"traceparent": {"00-a"}}},
		{nats.Header{"traceparent": {"00-a"}, "tracestate": {long}}, nats.Header{"traceparent": {"00-a"}}},
	} {
		w.request("acme", fmt.Sprintf("x%d", i), test.sent)
		got := w.await(schemas.StreamDecisions, i+1)[i].Header
		if diff := cmp.Diff(test.want, withoutServers(got)); diff != "" {
			t.Errorf("headers of decision %d (-want +got):\n%s", i, diff)
		}
	}
	w.settled("requested")
}

func TestADeadLettersHeadersAreNotTheRequesters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(&judge{})
	w.publish(asked, []byte("nonsense"), nats.Header{
		"Headroom-Truncated": {"7"}, "headroom-reason": {"none"}, "nats-expected-stream": {"x"}, "kept": {"a", "b"},
	})
	got := w.await(schemas.StreamDeadLetters, 1)[0].Header
	for _, name := range []string{"Headroom-Reason", "Headroom-Subject", "Headroom-Sequence", "Headroom-Deliveries", "Headroom-First", "Headroom-Last"} {
		if len(got.Values(name)) != 1 {
			t.Errorf("header %s has the values %q, want one", name, got.Values(name))
		}
		got.Del(name)
	}
	if diff := cmp.Diff(nats.Header{"kept": {"a", "b"}}, withoutServers(got)); diff != "" {
		t.Errorf("the message's own headers (-want +got):\n%s", diff)
	}
}

// withoutServers is a header without what NATS put there.
func withoutServers(header nats.Header) nats.Header {
	maps.DeleteFunc(header, func(name string, _ []string) bool { return strings.HasPrefix(name, "Nats-") })
	return header
}
