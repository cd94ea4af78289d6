package schemas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// SourceHeadroom is the CloudEvents source of what Headroom tells of itself, by
// whichever process and door: a repeated decision is the same event.
const SourceHeadroom = "headroom"

// MessageStore stores messages in streams; Publisher is one.
type MessageStore interface {
	PublishAll(ctx context.Context, messages []Message) []Result
}

// MessageReader reads a message of a stream; jetstream.Stream is one.
type MessageReader interface {
	GetMsg(ctx context.Context, sequence uint64, opts ...jetstream.GetMsgOpt) (*jetstream.RawStreamMsg, error)
}

// DecisionWriter stores decisions in the decisions stream, each once, and finds out
// which one counts where the stream has one of the same id already. It is safe for
// concurrent use as far as what it is made of is.
//
//	decision ─► decision.made, id = decision id ─► stored ─┬─► new: it stands
//	                                                       └─► duplicate: what the
//	                                                           stream holds stands
type DecisionWriter struct {
	store    MessageStore
	stored   MessageReader
	topology Topology
	shadow   bool
}

// DecisionWriterOptions makes a DecisionWriter. Store and Stored are required.
type DecisionWriterOptions struct {
	Store MessageStore
	// Stored reads the decisions stream.
	Stored   MessageReader
	Topology Topology
	// Shadow has every decision stored as allowed, marked `shadow`, and with the code
	// and error of the denial that it would have been.
	Shadow bool
}

// NewDecisionWriter makes a DecisionWriter.
func NewDecisionWriter(o DecisionWriterOptions) *DecisionWriter {
	return &DecisionWriter{store: o.Store, stored: o.Stored, topology: o.Topology, shadow: o.Shadow}
}

// OutgoingDecision is a decision to be stored.
type OutgoingDecision struct {
	Decision DecisionMade
	// About is the header of what asked; its trace headers travel on.
	About nats.Header
}

// WrittenDecision is what became of one.
type WrittenDecision struct {
	// Stands is the decision that counts, as the stream holds it: one that was stored
	// earlier under the same id takes the place of a repeated one.
	Stands DecisionMade
	// Body is the event of it.
	Body []byte
	// Duplicate: the stream had one of this id before.
	Duplicate bool
	// Err is why it is not known which decision stands. The decision may be stored all
	// the same; written again it is the same message. A *DecodeError is the decision's
	// own fault, and no repetition mends it.
	Err error
}

// Write stores the decisions, all in flight together, and returns when the stream has
// acknowledged them or ctx ends; what it returns is parallel to them.
func (w *DecisionWriter) Write(ctx context.Context, decisions []OutgoingDecision) []WrittenDecision {
	written := make([]WrittenDecision, len(decisions))
	messages := make([]Message, 0, len(decisions))
	indexes := make([]int, 0, len(decisions))
	for i, each := range decisions {
		m, err := w.compose(each, &written[i])
		if err != nil {
			written[i].Err = err
			continue
		}
		messages, indexes = append(messages, m), append(indexes, i)
	}
	if len(messages) == 0 {
		return written
	}
	for j, result := range w.store.PublishAll(ctx, messages) {
		w.conclude(ctx, &written[indexes[j]], result)
	}
	return written
}

func (w *DecisionWriter) compose(each OutgoingDecision, into *WrittenDecision) (Message, error) {
	d := each.Decision
	if w.shadow {
		d.Shadow, d.Allowed = true, true
	}
	body, err := Encode(NewEvent(SourceHeadroom, d.DecisionID, d.DecidedAt, d))
	if err != nil {
		return Message{}, fmt.Errorf("encode decision %s: %w", d.DecisionID, err)
	}
	into.Stands, into.Body = d, body
	return Message{Subject: w.topology.Decision(d.WorkspaceID), ID: d.DecisionID, Body: body, Header: TraceOf(each.About)}, nil
}

// conclude finds out which decision counts.
func (w *DecisionWriter) conclude(ctx context.Context, each *WrittenDecision, result Result) {
	id := each.Stands.DecisionID
	if result.Err != nil {
		each.Err = fmt.Errorf("publish decision %s: %w", id, result.Err)
		return
	}
	if !result.Duplicate {
		return
	}
	each.Duplicate = true
	raw, err := w.stored.GetMsg(ctx, result.Sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return // the stream no longer holds it, which leaves ours
	}
	if err != nil {
		each.Err = fmt.Errorf("read decision %s at %d: %w", id, result.Sequence, err)
		return
	}
	var event Event[DecisionMade]
	if err := json.Unmarshal(raw.Data, &event); err != nil {
		each.Err = fmt.Errorf("decode decision %s at %d: %w", id, result.Sequence, err)
		return
	}
	each.Stands, each.Body = event.Data, raw.Data
}

// Admits reports whether a decision let an execution start and charged it. One that
// is allowed because it is only a shadow of a denial did not.
func (d DecisionMade) Admits() bool { return d.Allowed && d.Code == 0 }
