package schemas

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Report is what Ensure did and what it found. Streams are named as they are,
// consumers as stream/consumer.
type Report struct {
	Created  []string
	Updated  []string
	Findings []Finding
}

// Finding is a setting that is narrower than Headroom needs and was left alone:
// whoever made it so may have had a reason, and changing it can lose messages.
type Finding struct {
	// Object is the stream, or the stream/consumer.
	Object  string
	Setting string
	Have    string
	Want    string
}

// String is a sentence for a log or a person.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s is %s, Headroom needs %s", f.Object, f.Setting, f.Have, f.Want)
}

// Ensure makes the streams and consumers that are missing. Of a stream that
// exists it changes nothing but what takes nothing away (its description, and
// direct reads turned on); whatever else is narrower than Headroom needs goes
// into the report. Consumers hold no messages, so they are brought up to date.
// It may be repeated, and called by several processes at once.
func (t Topology) Ensure(ctx context.Context, js jetstream.JetStream) (Report, error) {
	var r Report
	if err := t.Validate(); err != nil {
		return r, err
	}
	captured := make(map[string][]string)
	for _, want := range t.Streams() {
		have, err := r.ensureStream(ctx, js, want)
		if err != nil {
			return r, fmt.Errorf("ensure stream %s: %w", want.Name, err)
		}
		captured[want.Name] = have.Subjects
	}
	for _, want := range t.Consumers() {
		if !covered(captured[want.Stream], want.Config.FilterSubject) {
			r.find(want.name(), "filter subject", "not captured by the stream", want.Config.FilterSubject)
			continue
		}
		if err := r.ensureConsumer(ctx, js, want); err != nil {
			return r, fmt.Errorf("ensure consumer %s: %w", want.name(), err)
		}
	}
	return r, nil
}

func (c ConsumerSpec) name() string { return c.Stream + "/" + c.Config.Durable }

func (r *Report) find(object, setting string, have, want any) {
	r.Findings = append(r.Findings, Finding{object, setting, fmt.Sprint(have), fmt.Sprint(want)})
}

// ensureStream returns the stream's settings as they are afterwards.
func (r *Report) ensureStream(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) (jetstream.StreamConfig, error) {
	stream, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		// Creating what another process has just created alike is no error.
		stream, err = js.CreateStream(ctx, want)
		if err == nil {
			r.Created = append(r.Created, want.Name)
			return stream.CachedInfo().Config, nil
		}
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			stream, err = js.Stream(ctx, want.Name)
		}
	}
	if err != nil {
		return jetstream.StreamConfig{}, err
	}
	have := stream.CachedInfo().Config
	r.compareStream(have, want)
	if have.Description == want.Description && have.AllowDirect {
		return have, nil
	}
	have.Description, have.AllowDirect = want.Description, true
	if _, err := js.UpdateStream(ctx, have); err != nil {
		return have, fmt.Errorf("update description and direct reads: %w", err)
	}
	r.Updated = append(r.Updated, want.Name)
	return have, nil
}

func (r *Report) ensureConsumer(ctx context.Context, js jetstream.JetStream, want ConsumerSpec) error {
	consumer, err := js.Consumer(ctx, want.Stream, want.Config.Durable)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		_, err = js.CreateConsumer(ctx, want.Stream, want.Config)
		if err == nil {
			r.Created = append(r.Created, want.name())
			return nil
		}
		if errors.Is(err, jetstream.ErrConsumerExists) || errors.Is(err, jetstream.ErrConsumerNameAlreadyInUse) {
			consumer, err = js.Consumer(ctx, want.Stream, want.Config.Durable)
		}
	}
	if err != nil {
		return err
	}
	have := consumer.CachedInfo().Config
	if r.compareConsumer(want.name(), have, want.Config) || upToDate(have, want.Config) {
		return nil
	}
	next := widened(have, want.Config)
	if _, err := js.UpdateConsumer(ctx, want.Stream, next); err != nil {
		return fmt.Errorf("update: %w", err)
	}
	r.Updated = append(r.Updated, want.name())
	return nil
}
