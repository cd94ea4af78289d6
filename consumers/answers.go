package consumers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
)

// eventSource is the CloudEvents source of every decision, by whichever process
// and door it was taken: a repeated decision is the same event.
const eventSource = "headroom"

// answer is a decision on its way out.
type answer struct {
	about    *message
	decision schemas.DecisionMade
	inbox    string

	body []byte
	// stands is the decision that counts: the one that the stream holds under this
	// decision's id, which is another one if that was published first.
	stands schemas.DecisionMade
	err    error
}

// overruled reports whether the stream holds a denial where the answer allows.
func (a *answer) overruled() bool { return admits(a.decision) && !admits(a.stands) }

// admits reports whether a decision let an execution start and charged it.
func admits(d schemas.DecisionMade) bool { return d.Allowed && d.Code == 0 }

// answers publishes decisions, and sends them to who waits for them.
type answers struct {
	kind      string
	publisher publisher
	stored    decisionReader
	replies   *replies
	topology  schemas.Topology
	shadow    bool
	stats     *Stats
	probe     probe
}

// decisionReader reads a message of the decisions stream; jetstream.Stream is one.
type decisionReader interface {
	GetMsg(ctx context.Context, sequence uint64, opts ...jetstream.GetMsgOpt) (*jetstream.RawStreamMsg, error)
}

// publish stores the decisions and fills each answer's stands or err. An answer
// with an err may be stored all the same; published again it is the same message.
func (a *answers) publish(ctx context.Context, all []*answer) {
	messages := make([]schemas.Message, 0, len(all))
	sent := make([]*answer, 0, len(all))
	for _, each := range all {
		m, err := a.compose(each)
		if err != nil {
			each.err = err
			continue
		}
		messages, sent = append(messages, m), append(sent, each)
	}
	if len(sent) == 0 {
		return
	}
	a.probe.at(a.kind, "publishing")
	var results []schemas.Result
	a.probe.sending(a.kind, len(messages), func() { results = a.publisher.PublishAll(ctx, messages) })
	a.probe.at(a.kind, "published")
	for i, each := range sent {
		a.conclude(ctx, each, results[i])
	}
}

func (a *answers) compose(each *answer) (schemas.Message, error) {
	d := each.decision
	if a.shadow {
		d = shadowed(d)
	}
	body, err := schemas.Encode(schemas.NewEvent(eventSource, d.DecisionID, d.DecidedAt, d))
	if err != nil {
		return schemas.Message{}, fmt.Errorf("encode decision %s: %w", d.DecisionID, err)
	}
	each.body = body
	return schemas.Message{
		Subject: a.topology.Decision(d.WorkspaceID), ID: d.DecisionID, Body: body, Header: traceOf(each.about.header),
	}, nil
}

// notStored is the verdict on a message whose decision could not be published:
// put off, unless the decision itself is at fault.
func notStored(err error) error {
	var fault *schemas.DecodeError
	if errors.As(err, &fault) {
		return err
	}
	return &Defer{Reason: "the decision is not known to be stored", Err: err}
}

// shadowed is the decision as HEADROOM_SHADOW publishes it: allowed, marked as
// shadow, and with the code and error of the denial that it would have been.
func shadowed(d schemas.DecisionMade) schemas.DecisionMade {
	d.Shadow, d.Allowed = true, true
	return d
}

// conclude finds out which decision counts, and tells the requester that one.
func (a *answers) conclude(ctx context.Context, each *answer, result schemas.Result) {
	if result.Err != nil {
		each.err = fmt.Errorf("publish decision %s: %w", each.decision.DecisionID, result.Err)
		return
	}
	each.stands = each.decision
	if result.Duplicate {
		a.stats.repeated.Add(1)
		if each.err = a.readStored(ctx, each, result.Sequence); each.err != nil {
			return
		}
	} else {
		a.count(each.decision)
	}
	a.replies.send(each.inbox, each.body)
}

// readStored puts the stored decision in the place of a repeated one. One that the
// stream no longer holds leaves ours.
func (a *answers) readStored(ctx context.Context, each *answer, sequence uint64) error {
	raw, err := a.stored.GetMsg(ctx, sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read decision %s at %d: %w", each.decision.DecisionID, sequence, err)
	}
	var event schemas.Event[schemas.DecisionMade]
	if err := json.Unmarshal(raw.Data, &event); err != nil {
		return fmt.Errorf("decode decision %s at %d: %w", each.decision.DecisionID, sequence, err)
	}
	each.stands, each.body = event.Data, raw.Data
	return nil
}

func (a *answers) count(d schemas.DecisionMade) {
	switch {
	case admits(d):
		a.stats.allowed.Add(1)
	case d.Code == codeUnavailable:
		a.stats.unavailable.Add(1)
		a.stats.denied.Add(1)
	default:
		a.stats.denied.Add(1)
	}
}
