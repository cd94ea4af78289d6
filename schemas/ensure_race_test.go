package schemas_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// overtaken is a process that looks, finds nothing, and is overtaken by one that
// creates the same with other settings.
type overtaken struct {
	jetstream.JetStream
	stream   jetstream.StreamConfig
	consumer schemas.ConsumerSpec
}

func (o *overtaken) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	stream, err := o.JetStream.Stream(ctx, name)
	if err != nil && name == o.stream.Name {
		if _, err := o.CreateStream(ctx, o.stream); err != nil {
			return nil, err
		}
	}
	return stream, err
}

func (o *overtaken) Consumer(ctx context.Context, stream, name string) (jetstream.Consumer, error) {
	consumer, err := o.JetStream.Consumer(ctx, stream, name)
	if err != nil && name == o.consumer.Config.Durable {
		if _, err := o.CreateConsumer(ctx, stream, o.consumer.Config); err != nil {
			return nil, err
		}
	}
	return consumer, err
}

func TestEnsureIsOvertakenByAnotherVersion(t *testing.T) {
	t.Parallel()
	top := schemas.Topology{}
	o := &overtaken{JetStream: jetStream(t, schematest.NATS(t)), stream: top.Streams()[0], consumer: top.Consumers()[0]}
	o.stream.MaxAge, o.consumer.Config.AckWait = time.Hour, time.Second
	report := ensure(t, top, o)
	if len(report.Findings) != 1 || report.Findings[0].Setting != "max age" {
		t.Errorf("findings are %v, want the max age of the other's stream", report.Findings)
	}
	if !slices.Equal(report.Updated, []string{"HEADROOM_EXECUTIONS/requested"}) {
		t.Errorf("updated is %v, want the other's consumer", report.Updated)
	}
	consumer, err := o.JetStream.Consumer(t.Context(), o.stream.Name, "requested")
	if err != nil {
		t.Fatal(err)
	}
	if wait := consumer.CachedInfo().Config.AckWait; wait != schemas.AckWait {
		t.Errorf("the consumer waits %s, want %s", wait, schemas.AckWait)
	}
}
