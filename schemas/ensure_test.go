package schemas_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// everything is how many streams and consumers there are.
const everything = 6 + 4

func jetStream(t testing.TB, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func ensure(t testing.TB, top schemas.Topology, js jetstream.JetStream) schemas.Report {
	t.Helper()
	report, err := top.Ensure(t.Context(), js)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestEnsureMakesWhatIsMissingOnce(t *testing.T) {
	t.Parallel()
	js := jetStream(t, schematest.NATS(t))
	first := ensure(t, schemas.Topology{}, js)
	if len(first.Created) != everything || len(first.Updated) != 0 || len(first.Findings) != 0 {
		t.Errorf("first time: %+v, want streams and consumers created", first)
	}
	second := ensure(t, schemas.Topology{}, js)
	if diff := cmp.Diff(schemas.Report{}, second); diff != "" {
		t.Errorf("second time (-nothing +did):\n%s", diff)
	}
}

func TestEnsureBySeveralProcessesAtOnce(t *testing.T) {
	t.Parallel()
	schematest.NATS(t)
	start := make(chan struct{})
	reports := make([]schemas.Report, 6)
	var group errgroup.Group
	for i := range reports {
		nc, err := nats.Connect(schematest.NATSURL(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		js := jetStream(t, nc)
		group.Go(func() (err error) {
			<-start
			reports[i], err = schemas.Topology{}.Ensure(t.Context(), js)
			return err
		})
	}
	close(start)
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, r := range reports {
		if len(r.Findings) > 0 || len(r.Updated) > 0 {
			t.Errorf("one of them found or changed something: %+v", r)
		}
	}
	if again := ensure(t, schemas.Topology{}, jetStream(t, schematest.NATS(t))); len(again.Created) != 0 {
		t.Errorf("something was still missing: %v", again.Created)
	}
}

func TestTwoInstallationsShareAServer(t *testing.T) {
	t.Parallel()
	js := jetStream(t, schematest.NATS(t))
	ensure(t, schemas.Topology{}, js)
	other := ensure(t, schemas.Topology{Prefix: "acme.eu"}, js)
	if !slices.Contains(other.Created, "ACME_EU_EXECUTIONS") || len(other.Created) != everything {
		t.Errorf("created %v", other.Created)
	}
}

func TestASubjectWithATokenTooManyHasNoTaker(t *testing.T) {
	t.Parallel()
	js := jetStream(t, schematest.NATS(t))
	top := schemas.Topology{}
	ensure(t, top, js)
	if _, err := js.Publish(t.Context(), top.Requested("ws")+".x", nil); !errors.Is(err, jetstream.ErrNoStreamResponse) {
		t.Errorf("publish with a token too many: %v, want no response", err)
	}
	for _, subject := range []string{
		top.Requested("ws"), top.Progressed("ws"), top.Completed("ws"), top.Renewed("ws"), top.Decision("ws"),
		top.Invalidated("ws"), top.Threshold("ws"), top.DeadLetter("executions", "requested"),
	} {
		if _, err := js.Publish(t.Context(), subject, nil); err != nil {
			t.Errorf("publish to %s: %v", subject, err)
		}
	}
}

func TestEnsureReportsANarrowerStreamAndLeavesIt(t *testing.T) {
	t.Parallel()
	wanted := schemas.Topology{}.Streams()[0]
	tests := map[string]struct {
		narrow  func(*jetstream.StreamConfig)
		setting string
	}{
		"max age":                  {func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, "max age"},
		"memory":                   {func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }, "storage"},
		"duplicate window":         {func(c *jetstream.StreamConfig) { c.Duplicates = time.Second }, "duplicate window"},
		"work queue":               {func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy }, "retention"},
		"a subject missing":        {func(c *jetstream.StreamConfig) { c.Subjects = c.Subjects[:2] }, "subjects"},
		"max messages":             {func(c *jetstream.StreamConfig) { c.MaxMsgs = 10 }, "max messages"},
		"max bytes":                {func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 20 }, "max bytes"},
		"max messages per subject": {func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 1 }, "max messages per subject"},
		"max message size":         {func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1024 }, "max message size"},
		"no acknowledgement":       {func(c *jetstream.StreamConfig) { c.NoAck = true }, "acknowledgement of publishes"},
		"discard new":              {func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardNew }, "discard policy"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			js := jetStream(t, schematest.NATS(t))
			config := wanted
			config.Subjects = slices.Clone(wanted.Subjects)
			test.narrow(&config)
			before, err := js.CreateStream(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			report, err := schemas.Topology{}.Ensure(t.Context(), js)
			if err != nil {
				t.Fatal(err)
			}
			found := slices.ContainsFunc(report.Findings, func(f schemas.Finding) bool {
				return f.Object == wanted.Name && f.Setting == test.setting && strings.Contains(f.String(), "needs "+f.Want)
			})
			if !found {
				t.Errorf("findings are %v, want one of %s", report.Findings, test.setting)
			}
			after, err := js.Stream(t.Context(), wanted.Name)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before.CachedInfo().Config, after.CachedInfo().Config); diff != "" {
				t.Errorf("the stream was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestEnsureReportsFewerReplicas(t *testing.T) {
	t.Parallel()
	js := jetStream(t, schematest.NATS(t))
	ensure(t, schemas.Topology{Replicas: 1}, js)
	report := ensure(t, schemas.Topology{Replicas: 3}, js)
	if len(report.Findings) != 6 || report.Findings[0].String() != "HEADROOM_EXECUTIONS: replicas is 1, Headroom needs 3" {
		t.Errorf("findings are %v, want the replicas of each stream", report.Findings)
	}
}

func TestEnsureTakesAWiderStreamAsItIs(t *testing.T) {
	t.Parallel()
	js := jetStream(t, schematest.NATS(t))
	config := schemas.Topology{}.Streams()[0]
	config.Subjects = []string{"headroom.executions.*.*", "headroom.more.>"}
	config.MaxAge, config.Duplicates, config.Description, config.AllowDirect = 0, time.Hour, "ours", false
	if _, err := js.CreateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	report := ensure(t, schemas.Topology{}, js)
	if len(report.Findings) != 0 || !slices.Equal(report.Updated, []string{"HEADROOM_EXECUTIONS"}) {
		t.Errorf("report is %+v, want only the description and direct reads updated", report)
	}
	stream, err := js.Stream(t.Context(), "HEADROOM_EXECUTIONS")
	if err != nil {
		t.Fatal(err)
	}
	if got := stream.CachedInfo().Config; !got.AllowDirect || got.MaxAge != 0 || got.Duplicates != time.Hour || len(got.Subjects) != 2 {
		t.Errorf("the stream became %+v", got)
	}
}

func TestEnsureBringsAConsumerUpToDateAndKeepsWhatAnOperatorAdded(t *testing.T) {
	t.Parallel()
	js := jetStream(t, schematest.NATS(t))
	top := schemas.Topology{}
	ensure(t, top, js)
	old := top.Consumers()[0]
	pause := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	old.Config.AckWait, old.Config.MaxAckPending, old.Config.MaxDeliver = time.Second, 500_000, 5
	if _, err := js.UpdateConsumer(t.Context(), old.Stream, old.Config); err != nil {
		t.Fatal(err)
	}
	if _, err := js.PauseConsumer(t.Context(), old.Stream, old.Config.Durable, pause); err != nil {
		t.Fatal(err)
	}
	report := ensure(t, top, js)
	if !slices.Equal(report.Updated, []string{"HEADROOM_EXECUTIONS/requested"}) || len(report.Findings) != 0 {
		t.Errorf("report is %+v, want the consumer updated", report)
	}
	consumer, err := js.Consumer(t.Context(), old.Stream, old.Config.Durable)
	if err != nil {
		t.Fatal(err)
	}
	got := consumer.CachedInfo().Config
	if got.AckWait != schemas.AckWait || got.MaxDeliver != -1 || got.MaxAckPending != 500_000 || got.PauseUntil == nil || !got.PauseUntil.Equal(pause) {
		t.Errorf("the consumer became %+v", got)
	}
}

func TestEnsureReportsAConsumerThatCannotBeChanged(t *testing.T) {
	t.Parallel()
	js := jetStream(t, schematest.NATS(t))
	top := schemas.Topology{}
	if _, err := js.CreateStream(t.Context(), top.Streams()[0]); err != nil {
		t.Fatal(err)
	}
	wrong := top.Consumers()[0]
	wrong.Config.AckPolicy = jetstream.AckAllPolicy
	if _, err := js.CreateConsumer(t.Context(), wrong.Stream, wrong.Config); err != nil {
		t.Fatal(err)
	}
	report := ensure(t, top, js)
	if len(report.Findings) != 1 || report.Findings[0].Setting != "ack policy" || report.Findings[0].Object != "HEADROOM_EXECUTIONS/requested" {
		t.Errorf("findings are %v, want the ack policy", report.Findings)
	}
}
