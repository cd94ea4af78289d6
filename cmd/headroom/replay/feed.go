package replay

import (
	"context"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
)

// feed reads the stream of decisions from its present end on, and hands each
// decision to whoever expects it.
type feed struct {
	consuming jetstream.ConsumeContext
	overheard func(schemas.DecisionMade)

	mu       sync.Mutex
	expected map[string]chan schemas.DecisionMade
	// seen is the sequence read last, and moved is closed when it moves.
	seen  uint64
	moved chan struct{}
}

func openFeed(ctx context.Context, stream jetstream.Stream, overheard func(schemas.DecisionMade)) (*feed, error) {
	info, err := stream.Info(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask for the end of the decisions: %w", err)
	}
	f := &feed{
		overheard: overheard, seen: info.State.LastSeq,
		expected: make(map[string]chan schemas.DecisionMade), moved: make(chan struct{}),
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: f.seen + 1,
	})
	if err != nil {
		return nil, fmt.Errorf("read the stream of decisions: %w", err)
	}
	if f.consuming, err = consumer.Consume(f.take); err != nil {
		return nil, fmt.Errorf("read the stream of decisions: %w", err)
	}
	return f, nil
}

// close returns when no decision is being handled any more.
func (f *feed) close() {
	f.consuming.Stop()
	<-f.consuming.Closed()
}

// expect returns a channel on which the decision for the request event comes.
func (f *feed) expect(key string) <-chan schemas.DecisionMade {
	answer := make(chan schemas.DecisionMade, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expected[key] = answer
	return answer
}

func (f *feed) forget(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.expected, key)
}

// reach waits until everything up to the sequence has been read.
func (f *feed) reach(ctx context.Context, sequence uint64) error {
	for {
		f.mu.Lock()
		seen, moved := f.seen, f.moved
		f.mu.Unlock()
		if seen >= sequence {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("read the decisions up to %d: %w", sequence, context.Cause(ctx))
		case <-moved:
		}
	}
}

// take skips a body that is no decision: the stream takes what anybody who
// may publish there sends.
func (f *feed) take(message jetstream.Msg) {
	event, err := schemas.Decode[schemas.DecisionMade](message.Subject(), message.Data())
	if err == nil && !f.hand(event.Data) {
		f.overheard(event.Data)
	}
	if metadata, err := message.Metadata(); err == nil {
		f.advance(metadata.Sequence.Stream)
	}
}

// hand gives a decision to who expects it, once: a second one for the same event
// is overheard, however soon it comes.
func (f *feed) hand(decision schemas.DecisionMade) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := keyOf(decision.RequestEventSource, decision.RequestEventID)
	answer, wanted := f.expected[key]
	if wanted {
		delete(f.expected, key)
		answer <- decision // holds one, and gets no more
	}
	return wanted
}

func (f *feed) advance(sequence uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = max(f.seen, sequence)
	close(f.moved)
	f.moved = make(chan struct{})
}

// keyOf joins the two parts of an event's identity with what neither contains.
func keyOf(source, id string) string { return source + "\x00" + id }
