package schemas

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Inspection is what is there of a topology, and how it differs.
type Inspection struct {
	// Streams and Consumers are those that exist, by the names that Report uses.
	Streams   map[string]*jetstream.StreamInfo
	Consumers map[string]*jetstream.ConsumerInfo
	// Missing are those that do not exist. A consumer whose stream is missing is not told of.
	Missing []string
	// Narrower are settings that Ensure leaves as they are.
	Narrower []Finding
	// Behind are consumers that Ensure would bring up to date.
	Behind []string
}

// Inspect compares what is there with what Ensure would make, and changes nothing.
func (t Topology) Inspect(ctx context.Context, js jetstream.JetStream) (Inspection, error) {
	found := Inspection{Streams: make(map[string]*jetstream.StreamInfo), Consumers: make(map[string]*jetstream.ConsumerInfo)}
	var r Report
	for _, want := range t.Streams() {
		stream, err := js.Stream(ctx, want.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			found.Missing = append(found.Missing, want.Name)
			continue
		}
		if err != nil {
			return Inspection{}, fmt.Errorf("inspect stream %s: %w", want.Name, err)
		}
		found.Streams[want.Name] = stream.CachedInfo()
		r.compareStream(stream.CachedInfo().Config, want)
	}
	for _, want := range t.Consumers() {
		if found.Streams[want.Stream] == nil {
			continue
		}
		if err := found.consumer(ctx, js, want, &r); err != nil {
			return Inspection{}, fmt.Errorf("inspect consumer %s: %w", want.name(), err)
		}
	}
	found.Narrower = r.Findings
	return found, nil
}

func (i *Inspection) consumer(ctx context.Context, js jetstream.JetStream, want ConsumerSpec, r *Report) error {
	consumer, err := js.Consumer(ctx, want.Stream, want.Config.Durable)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		i.Missing = append(i.Missing, want.name())
		return nil
	}
	if err != nil {
		return err
	}
	info := consumer.CachedInfo()
	i.Consumers[want.name()] = info
	if !r.compareConsumer(want.name(), info.Config, want.Config) && !upToDate(info.Config, want.Config) {
		i.Behind = append(i.Behind, want.name())
	}
	return nil
}
