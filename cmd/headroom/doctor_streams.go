package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
)

// How long something may wait that is done within a second as a rule.
const (
	waitWarn = time.Minute
	waitFail = 15 * time.Minute
)

func (d *doctor) streamChecks() []examination {
	p := d.nats
	if p.streamsErr != nil {
		return []examination{{"nats.streams", func(context.Context) judgement { return unasked(p.streamsErr) }}}
	}
	topology := d.config.topology()
	return []examination{
		{"nats.streams", func(context.Context) judgement { return judgeStreams(p.streams) }},
		{"nats.settings", func(context.Context) judgement { return judgeNarrower(p.streams.Narrower) }},
		{"nats.replicas", func(context.Context) judgement {
			return judgeReplicas(d.config.NATSReplicas, p.conn.ConnectedClusterName(), p.streams.Streams)
		}},
		{"nats.lag", func(ctx context.Context) judgement { return p.lag(ctx, topology) }},
		{"nats.deadletters", func(context.Context) judgement {
			return judgeDeadLetters(p.streams.Streams[topology.Stream(schemas.StreamDeadLetters)])
		}},
	}
}

func judgeStreams(is schemas.Inspection) judgement {
	j := passes("%s and %s are there", counted(len(is.Streams), "stream"), counted(len(is.Consumers), "consumer"))
	switch {
	case len(is.Missing) > 0:
		j = fails("missing: %s", strings.Join(is.Missing, ", "))
	case len(is.Behind) > 0:
		j = warns("of an earlier version: %s", strings.Join(is.Behind, ", "))
	}
	return j.with("missing", list(is.Missing)).with("behind", list(is.Behind))
}

// narrower is a finding of a stream's settings as -o json prints it.
type narrower struct {
	Object  string `json:"object"`
	Setting string `json:"setting"`
	Have    string `json:"have"`
	Want    string `json:"want"`
}

func judgeNarrower(found []schemas.Finding) judgement {
	j := passes("streams and consumers are set as Headroom needs them")
	var texts []string
	var shown []narrower
	for _, f := range found {
		texts, shown = append(texts, f.String()), append(shown, narrower(f))
	}
	if len(found) > 0 {
		j = fails("%s", strings.Join(texts, "; "))
	}
	return j.with("narrower", list(shown))
}

func judgeReplicas(wanted int, cluster string, streams map[string]*jetstream.StreamInfo) judgement {
	var behind []string
	for _, name := range sortedKeys(streams) {
		if streams[name].Cluster == nil {
			continue
		}
		for _, peer := range streams[name].Cluster.Replicas {
			if peer.Offline || !peer.Current {
				behind = append(behind, fmt.Sprintf("%s on %s", name, peer.Name))
			}
		}
	}
	j := passes("streams are to have %s", counted(wanted, "copy"))
	switch {
	case len(behind) > 0:
		j = warns("a copy is away or behind: %s", several(behind))
	case wanted%2 == 0:
		j = warns("HEADROOM_NATS_REPLICAS is %d: an even number survives no more servers than one less does", wanted)
	case cluster != "" && wanted < 3:
		j = warns("the servers are a cluster (%s), and HEADROOM_NATS_REPLICAS is %d: a stream is away with its server", cluster, wanted)
	}
	return j.with("replicas", wanted).with("cluster", cluster).with("behind", list(behind))
}

// consumerLag is how far a consumer is, as -o json prints it.
type consumerLag struct {
	Pending     uint64 `json:"pending"`
	AckPending  int    `json:"ack_pending"`
	Redelivered int    `json:"redelivered"`
	// Pulls are the requests for messages that wait at the server: 0 is that nobody consumes.
	Pulls         int     `json:"pulls"`
	OldestSeconds float64 `json:"oldest_seconds"`
	oldest        time.Duration
}

// lag looks for the oldest event that is not settled, of each consumer.
func (p *natsPatient) lag(ctx context.Context, topology schemas.Topology) judgement {
	lags := make(map[string]consumerLag)
	for _, spec := range topology.Consumers() {
		name := spec.Stream + "/" + spec.Config.Durable
		if p.streams.Consumers[name] == nil {
			continue // nats.streams tells of it
		}
		lag, err := lagOf(ctx, p.js, spec)
		if err != nil {
			return unasked(fmt.Errorf("look how far %s is: %w", name, err))
		}
		lags[name] = lag
	}
	return judgeLag(lags)
}

func lagOf(ctx context.Context, js jetstream.JetStream, spec schemas.ConsumerSpec) (consumerLag, error) {
	consumer, err := js.Consumer(ctx, spec.Stream, spec.Config.Durable)
	if err != nil {
		return consumerLag{}, err
	}
	is := consumer.CachedInfo()
	lag := consumerLag{Pending: is.NumPending, AckPending: is.NumAckPending, Redelivered: is.NumRedelivered, Pulls: is.NumWaiting}
	if is.NumPending == 0 && is.NumAckPending == 0 {
		return lag, nil
	}
	stream, err := js.Stream(ctx, spec.Stream)
	if err != nil {
		return consumerLag{}, err
	}
	// Everything up to the floor is settled, and what follows it is not.
	oldest, err := stream.GetMsg(ctx, is.AckFloor.Stream+1, jetstream.WithGetMsgSubject(spec.Config.FilterSubject))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return lag, nil // settled meanwhile
	}
	if err != nil {
		return consumerLag{}, err
	}
	lag.oldest = max(stream.CachedInfo().TimeStamp.Sub(oldest.Time), 0)
	lag.OldestSeconds = lag.oldest.Seconds()
	return lag, nil
}

func judgeLag(lags map[string]consumerLag) judgement {
	var all []judgement
	for _, name := range sortedKeys(lags) {
		is := lags[name]
		if is.Pending == 0 && is.AckPending == 0 {
			continue
		}
		text := fmt.Sprintf("%s: the oldest event waits for %s, %d are not delivered and %d not settled, %d of them delivered again",
			name, brief(is.oldest), is.Pending, is.AckPending, is.Redelivered)
		if is.Pulls == 0 {
			text += "; nobody consumes"
		}
		all = append(all, judged(byAge(is.oldest, waitWarn, waitFail), "%s", text))
	}
	if len(all) == 0 {
		all = append(all, passes("no event waits"))
	}
	return worst(all...).with("consumers", lags)
}

func judgeDeadLetters(stream *jetstream.StreamInfo) judgement {
	switch {
	case stream == nil:
		return passes("there is no stream of dead letters yet").with("letters", 0)
	case stream.State.Msgs == 0:
		return passes("no dead letters").with("letters", 0)
	}
	return warns("%s, the last of %s", counted(int(stream.State.Msgs), "dead letter"), instant(stream.State.LastTime)).
		with("letters", stream.State.Msgs).with("last_at", stream.State.LastTime.UTC())
}
