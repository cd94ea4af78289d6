package schemas

import (
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// compareStream reports whatever makes a stream hold less, shorter or less
// safely than wanted.
func (r *Report) compareStream(have, want jetstream.StreamConfig) {
	for _, subject := range want.Subjects {
		if !covered(have.Subjects, subject) {
			r.find(want.Name, "subjects", have.Subjects, subject)
		}
	}
	if have.Retention != want.Retention {
		r.find(want.Name, "retention", have.Retention, want.Retention)
	}
	if have.Storage != want.Storage {
		r.find(want.Name, "storage", have.Storage, want.Storage)
	}
	if have.Replicas < want.Replicas {
		r.find(want.Name, "replicas", have.Replicas, want.Replicas)
	}
	if have.MaxAge > 0 && have.MaxAge < want.MaxAge {
		r.find(want.Name, "max age", have.MaxAge, want.MaxAge)
	}
	if have.Duplicates < want.Duplicates {
		r.find(want.Name, "duplicate window", have.Duplicates, want.Duplicates)
	}
	if have.Discard != want.Discard {
		r.find(want.Name, "discard policy", have.Discard, want.Discard)
	}
	if have.NoAck {
		r.find(want.Name, "acknowledgement of publishes", "off", "on")
	}
	if have.Sealed {
		r.find(want.Name, "sealed", true, false)
	}
	r.compareBounds(have, want.Name)
}

// compareBounds reports limits that Headroom never sets: each of them can drop
// a message that was acknowledged, or refuse one that must be recorded.
func (r *Report) compareBounds(have jetstream.StreamConfig, name string) {
	for _, b := range []struct {
		setting string
		value   int64
	}{
		{"max messages", have.MaxMsgs},
		{"max bytes", have.MaxBytes},
		{"max messages per subject", have.MaxMsgsPerSubject},
		{"max message size", int64(have.MaxMsgSize)},
		{"max consumers", int64(have.MaxConsumers)},
	} {
		if b.value > 0 {
			r.find(name, b.setting, b.value, "no bound")
		}
	}
}

// compareConsumer reports what the server cannot change on a consumer that
// exists; true means that there is such a difference.
func (r *Report) compareConsumer(name string, have, want jetstream.ConsumerConfig) bool {
	before := len(r.Findings)
	if have.AckPolicy != want.AckPolicy {
		r.find(name, "ack policy", have.AckPolicy, want.AckPolicy)
	}
	if have.DeliverPolicy != want.DeliverPolicy {
		r.find(name, "deliver policy", have.DeliverPolicy, want.DeliverPolicy)
	}
	if have.DeliverSubject != "" {
		r.find(name, "delivery", "push", "pull")
	}
	return len(r.Findings) > before
}

// widened is have with our settings. A larger window stays, and so does what an
// operator added that we set nothing for, such as a pause.
func widened(have, want jetstream.ConsumerConfig) jetstream.ConsumerConfig {
	have.FilterSubject, have.FilterSubjects = want.FilterSubject, nil
	have.AckWait = want.AckWait
	have.MaxDeliver = want.MaxDeliver
	have.BackOff = nil
	have.InactiveThreshold = 0
	if have.MaxAckPending > 0 {
		have.MaxAckPending = max(have.MaxAckPending, want.MaxAckPending)
	}
	return have
}

func upToDate(have, want jetstream.ConsumerConfig) bool {
	return have.FilterSubject == want.FilterSubject && len(have.FilterSubjects) == 0 &&
		have.AckWait == want.AckWait && have.MaxDeliver == want.MaxDeliver &&
		len(have.BackOff) == 0 && have.InactiveThreshold == 0 &&
		(have.MaxAckPending <= 0 || have.MaxAckPending >= want.MaxAckPending)
}

// covered reports whether one of the patterns takes every subject that want does.
func covered(patterns []string, want string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return covers(p, want) })
}

func covers(pattern, want string) bool {
	have, need := strings.Split(pattern, "."), strings.Split(want, ".")
	for i, token := range have {
		if token == ">" {
			return i < len(need)
		}
		if i >= len(need) || token != "*" && token != need[i] {
			return false
		}
	}
	return len(have) == len(need)
}
