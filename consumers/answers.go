package consumers

import (
	"context"
	"errors"

	"github.com/headroomhq/headroom/schemas"
)

// answer is a decision on its way out.
type answer struct {
	about    *message
	decision schemas.DecisionMade
	inbox    string

	// stands is the decision that counts: the one that the stream holds under this
	// decision's id, which is another one if that was published first.
	stands schemas.DecisionMade
	err    error
}

// overruled reports whether the stream holds a denial where the answer allows.
func (a *answer) overruled() bool { return a.decision.Admits() && !a.stands.Admits() }

// answers publishes decisions, and sends them to who waits for them.
type answers struct {
	writer  *schemas.DecisionWriter
	replies *replies
	stats   *Stats
}

// publish stores the decisions and fills each answer's stands or err. An answer
// with an err may be stored all the same; published again it is the same message.
func (a *answers) publish(ctx context.Context, all []*answer) {
	if len(all) == 0 {
		return
	}
	out := make([]schemas.OutgoingDecision, len(all))
	for i, each := range all {
		out[i] = schemas.OutgoingDecision{Decision: each.decision, About: each.about.header}
	}
	for i, written := range a.writer.Write(ctx, out) {
		a.conclude(all[i], written)
	}
}

// conclude takes note of the decision that counts, and tells the requester that one.
func (a *answers) conclude(each *answer, written schemas.WrittenDecision) {
	if written.Duplicate {
		a.stats.repeated.Add(1)
	}
	if each.err = written.Err; each.err != nil {
		return
	}
	each.stands = written.Stands
	if !written.Duplicate {
		a.count(each.decision)
	}
	a.replies.send(each.inbox, written.Body)
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

func (a *answers) count(d schemas.DecisionMade) {
	switch {
	case d.Admits():
		a.stats.allowed.Add(1)
	case d.Code == codeUnavailable:
		a.stats.unavailable.Add(1)
		a.stats.denied.Add(1)
	default:
		a.stats.denied.Add(1)
	}
}

// probed is a publisher whose steps a probe is told of.
type probed struct {
	publisher

	kind  string
	probe probe
}

// PublishAll is the publisher's.
func (p probed) PublishAll(ctx context.Context, messages []schemas.Message) (results []schemas.Result) {
	p.probe.at(p.kind, "publishing")
	p.probe.sending(p.kind, len(messages), func() { results = p.publisher.PublishAll(ctx, messages) })
	p.probe.at(p.kind, "published")
	return results
}
