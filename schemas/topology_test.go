package schemas_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
)

func TestTheStreamsAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	want := map[string][]string{
		"HEADROOM_EXECUTIONS":    {"headroom.executions.requested.*", "headroom.executions.progressed.*", "headroom.executions.completed.*"},
		"HEADROOM_SUBSCRIPTIONS": {"headroom.subscriptions.renewed.*"},
		"HEADROOM_DECISIONS":     {"headroom.decisions.*"},
		"HEADROOM_PLANS":         {"headroom.plans.invalidated.*"},
		"HEADROOM_USAGE":         {"headroom.usage.threshold.*"},
		"HEADROOM_DEADLETTERS":   {"headroom.deadletters.*.*"},
	}
	got := map[string][]string{}
	for _, s := range (schemas.Topology{Replicas: 3}).Streams() {
		got[s.Name] = s.Subjects
		if s.Retention != jetstream.LimitsPolicy || s.Storage != jetstream.FileStorage || s.Replicas != 3 {
			t.Errorf("%s: retention %s, storage %s, replicas %d", s.Name, s.Retention, s.Storage, s.Replicas)
		}
		if s.MaxAge < 7*24*time.Hour || s.Duplicates < 2*time.Minute || s.Duplicates > s.MaxAge {
			t.Errorf("%s: max age %s, duplicate window %s", s.Name, s.MaxAge, s.Duplicates)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("streams (-want +got):\n%s", diff)
	}
}

func TestTheConsumersAreDurableAndNeverGiveUp(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"HEADROOM_EXECUTIONS/requested":  "headroom.executions.requested.*",
		"HEADROOM_EXECUTIONS/progressed": "headroom.executions.progressed.*",
		"HEADROOM_EXECUTIONS/completed":  "headroom.executions.completed.*",
		"HEADROOM_SUBSCRIPTIONS/renewed": "headroom.subscriptions.renewed.*",
	}
	got := map[string]string{}
	for _, c := range (schemas.Topology{}).Consumers() {
		got[c.Stream+"/"+c.Config.Durable] = c.Config.FilterSubject
		if c.Config.AckPolicy != jetstream.AckExplicitPolicy || c.Config.AckWait != 30*time.Second ||
			c.Config.MaxDeliver != -1 || c.Config.MaxAckPending < 10_000 || c.Config.DeliverPolicy != jetstream.DeliverAllPolicy {
			t.Errorf("%s: %+v", c.Config.Durable, c.Config)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("consumers (-want +got):\n%s", diff)
	}
}

func TestAPrefixIsInEverySubjectAndStream(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]string{"": "HEADROOM_PLANS", "headroom": "HEADROOM_PLANS", "acme": "ACME_PLANS", "acme.eu-1": "ACME_EU-1_PLANS"} {
		top := schemas.Topology{Prefix: prefix}
		if err := top.Validate(); err != nil {
			t.Errorf("prefix %q: %v", prefix, err)
		}
		if got := top.Stream(schemas.StreamPlans); got != want {
			t.Errorf("prefix %q: stream %s, want %s", prefix, got, want)
		}
		if prefix == "" {
			prefix = "headroom"
		}
		for _, s := range top.Streams() {
			if slices.ContainsFunc(s.Subjects, func(subject string) bool { return !strings.HasPrefix(subject, prefix+".") }) {
				t.Errorf("prefix %q: stream %s takes %v", prefix, s.Name, s.Subjects)
			}
		}
	}
}

func TestATopologyThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	for _, top := range []schemas.Topology{
		{Prefix: "."},
		{Prefix: "a."},
		{Prefix: ".a"},
		{Prefix: "a..b"},
		{Prefix: "a b"},
		{Prefix: "a.*"},
		{Prefix: ">"},
		{Prefix: "$JS"},
		{Replicas: -1},
		{Replicas: 6},
	} {
		if err := top.Validate(); err == nil {
			t.Errorf("%+v is accepted", top)
		}
	}
}
