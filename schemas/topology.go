package schemas

import (
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// DefaultPrefix is the first token of every subject unless configured.
const DefaultPrefix = "headroom"

// Durable names of the consumers.
const (
	ConsumerRequested  = "requested"
	ConsumerProgressed = "progressed"
	ConsumerCompleted  = "completed"
	ConsumerRenewed    = "renewed"
)

// AckWait is how long a delivered message may stay unsettled before the server
// delivers it again.
const AckWait = 30 * time.Second

// StreamKind tells Headroom's streams apart, whatever the prefix makes of their names.
type StreamKind string

// The streams.
const (
	StreamExecutions    StreamKind = "EXECUTIONS"
	StreamSubscriptions StreamKind = "SUBSCRIPTIONS"
	StreamDecisions     StreamKind = "DECISIONS"
	StreamPlans         StreamKind = "PLANS"
	StreamUsage         StreamKind = "USAGE"
	StreamDeadLetters   StreamKind = "DEADLETTERS"
)

// Topology names the subjects, streams and consumers of one installation. The
// zero value is the default one: prefix "headroom", one replica.
type Topology struct {
	// Prefix is the first token, or tokens, of every subject.
	Prefix string
	// Replicas is how many copies the server keeps of each stream that is created.
	Replicas int
}

// Validate reports a prefix that cannot begin a subject or an impossible
// number of replicas.
func (t Topology) Validate() error {
	for token := range strings.SplitSeq(t.prefix(), ".") {
		if !ValidID(token) {
			return fmt.Errorf("check topology: subject prefix %q: each token must be letters, digits, dashes and underscores", t.Prefix)
		}
	}
	if t.Replicas < 0 || t.Replicas > 5 {
		return fmt.Errorf("check topology: %d replicas: must be 1 to 5", t.Replicas)
	}
	return nil
}

func (t Topology) prefix() string {
	if t.Prefix == "" {
		return DefaultPrefix
	}
	return t.Prefix
}

// Requested is the subject of a workspace's execution.requested events; like
// the following ones it takes "*" for all workspaces.
func (t Topology) Requested(ws string) string { return t.prefix() + ".executions.requested." + ws }

// Progressed is the subject of execution.progressed.
func (t Topology) Progressed(ws string) string { return t.prefix() + ".executions.progressed." + ws }

// Completed is the subject of execution.completed.
func (t Topology) Completed(ws string) string { return t.prefix() + ".executions.completed." + ws }

// Renewed is the subject of subscription.renewed.
func (t Topology) Renewed(ws string) string { return t.prefix() + ".subscriptions.renewed." + ws }

// Decision is the subject of decision.made.
func (t Topology) Decision(ws string) string { return t.prefix() + ".decisions." + ws }

// Invalidated is the subject of plan.invalidated.
func (t Topology) Invalidated(ws string) string { return t.prefix() + ".plans.invalidated." + ws }

// Threshold is the subject of usage.threshold_reached.
func (t Topology) Threshold(ws string) string { return t.prefix() + ".usage.threshold." + ws }

// API is the first tokens of the subjects on which questions are answered at once; the
// last one names what is asked for, such as "admit".
func (t Topology) API() string { return t.prefix() + ".api" }

// DeadLetter is the subject of what a room could not take: room is the stream's
// noun ("executions"), kind the message's ("requested").
func (t Topology) DeadLetter(room, kind string) string {
	return t.prefix() + ".deadletters." + room + "." + kind
}

// Stream is the name of a stream: HEADROOM_EXECUTIONS, or with another prefix
// that prefix in upper case, so that two installations can share a server.
func (t Topology) Stream(kind StreamKind) string {
	return strings.ToUpper(strings.ReplaceAll(t.prefix(), ".", "_")) + "_" + string(kind)
}

const day = 24 * time.Hour

// Streams are the six streams as Headroom wants them. Each captures exact
// tokens, so that a subject with one too many has no taker and its publisher
// hears of it. Retention is by limits: a work queue forgets message ids once
// a message is acked and the server restarts.
//
// The windows in which a message id is remembered:
//
//   - executions, 2 minutes: it only has to cover a publisher's own retry. A
//     request that comes again later gets the stored outcome of the first.
//   - decisions, 10 minutes: a killed instance's requests are delivered again
//     after AckWait, and once more after each deferral; ten minutes cover that
//     and a restart of everything. After that a repeated decision is a second
//     message with the same decision_id, which readers fold into one. An id
//     costs the server about 150 bytes of memory (measured on 2.15.3) for the
//     length of the window: 90 MB at a lasting 1,000 decisions a second.
//   - the others, 1 hour: few messages, and a relay that was down for a while
//     must not tell its news twice.
func (t Topology) Streams() []jetstream.StreamConfig {
	return []jetstream.StreamConfig{
		t.stream(StreamExecutions, 7*day, 2*time.Minute,
			"What engines ask for and report", t.Requested("*"), t.Progressed("*"), t.Completed("*")),
		t.stream(StreamSubscriptions, 30*day, time.Hour,
			"Billing periods that began or ended", t.Renewed("*")),
		t.stream(StreamDecisions, 7*day, 10*time.Minute,
			"Headroom's decisions, the record they are counted from", t.Decision("*")),
		t.stream(StreamPlans, 7*day, time.Hour,
			"Workspaces whose cached plan is out of date", t.Invalidated("*")),
		t.stream(StreamUsage, 30*day, time.Hour,
			"Usage that reached a threshold", t.Threshold("*")),
		t.stream(StreamDeadLetters, 30*day, time.Hour,
			"Messages that could not be taken, with the reason", t.DeadLetter("*", "*")),
	}
}

func (t Topology) stream(kind StreamKind, age, duplicates time.Duration, about string, subjects ...string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        t.Stream(kind),
		Description: about,
		Subjects:    subjects,
		Retention:   jetstream.LimitsPolicy,
		Storage:     jetstream.FileStorage,
		Discard:     jetstream.DiscardOld,
		Replicas:    max(t.Replicas, 1),
		MaxAge:      age,
		Duplicates:  duplicates,
		AllowDirect: true,
	}
}

// ConsumerSpec is a durable consumer and the stream it reads.
type ConsumerSpec struct {
	Stream string
	Config jetstream.ConsumerConfig
}

// Consumers are the durable pull consumers. Deliveries are unlimited: attempts
// are counted by the reader, which writes the dead letter itself. The ledger has
// none: it reads in order from a position that it keeps in Postgres.
func (t Topology) Consumers() []ConsumerSpec {
	executions := t.Stream(StreamExecutions)
	return []ConsumerSpec{
		{executions, durable(ConsumerRequested, t.Requested("*"))},
		{executions, durable(ConsumerProgressed, t.Progressed("*"))},
		{executions, durable(ConsumerCompleted, t.Completed("*"))},
		{t.Stream(StreamSubscriptions), durable(ConsumerRenewed, t.Renewed("*"))},
	}
}

// maxAckPending lets a backlog of deferred messages grow without stopping the
// ones behind it: it is far above what all instances hold in flight.
const maxAckPending = 100_000

func durable(name, filter string) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Name:          name,
		Durable:       name,
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       AckWait,
		MaxDeliver:    -1,
		MaxAckPending: maxAckPending,
		FilterSubject: filter,
	}
}
