package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas"
)

func ledgerDiagnoses() []diagnosis {
	const service = "ledger"
	return []diagnosis{
		{
			"ledger.lag", service, "the ledger is more than 15 minutes behind a stream", "more than a minute behind",
			"see that `headroom serve` runs and what its log says of the ledger; a Redis that is rebuilt waits for it",
		},
		{
			"ledger.gaps", service, "a stream dropped messages before the ledger had read them, or ends before what it has read", "",
			"see why the stream is shorter (its limits, a restored backup, a power cut); run `headroom serve`, which reads on from what is there, and compare usage with the engine's own record",
		},
	}
}

// folded is one of the streams that the ledger is kept from.
type folded struct {
	stream, subject string
	// applied is the ledger's position, first and last what the stream holds.
	applied, first, last uint64
	behind               time.Duration
}

// ledgerChecks compare the streams with the database, and need both.
func (d *doctor) ledgerChecks() []examination {
	if d.nats == nil || d.nats.accountErr != nil || d.nats.streamsErr != nil || d.db == nil {
		return nil
	}
	judge := func(judge func([]folded) judgement) func(context.Context) judgement {
		return func(ctx context.Context) judgement {
			streams, err := d.folded(ctx)
			if err != nil {
				return unread(err)
			}
			return judge(streams)
		}
	}
	return []examination{{"ledger.lag", judge(judgeLedger)}, {"ledger.gaps", judge(judgeGaps)}}
}

func (d *doctor) folded(ctx context.Context) ([]folded, error) {
	t := d.config.topology()
	book := ledger.New(d.db.pool)
	streams := []folded{
		{stream: t.Stream(schemas.StreamDecisions), subject: t.Decision("*")},
		{stream: t.Stream(schemas.StreamExecutions), subject: t.Completed("*")},
		{stream: t.Stream(schemas.StreamPlans), subject: t.Invalidated("*")},
	}
	for i := range streams {
		f := &streams[i]
		stream, err := d.nats.js.Stream(ctx, f.stream)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue // nats.streams tells of it
		}
		if err != nil {
			return nil, fmt.Errorf("open stream %s: %w", f.stream, err)
		}
		is := stream.CachedInfo()
		f.first, f.last = is.State.FirstSeq, is.State.LastSeq
		if f.applied, err = book.Applied(ctx, ledger.Source(f.stream, is.Created)); err != nil {
			return nil, err
		}
		next, err := stream.GetMsg(ctx, f.applied+1, jetstream.WithGetMsgSubject(f.subject))
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", f.stream, err)
		default:
			f.behind = max(is.TimeStamp.Sub(next.Time), 0)
		}
	}
	return streams, nil
}

func judgeLedger(streams []folded) judgement {
	var all []judgement
	details := make(map[string]any)
	for _, f := range streams {
		details[f.stream] = map[string]any{"applied": f.applied, "last": f.last, "behind_seconds": f.behind.Seconds()}
		if f.behind > 0 {
			all = append(all, judged(byAge(f.behind, waitWarn, waitFail), "the ledger is %s behind %s (it has %d of %d)", brief(f.behind), f.stream, f.applied, f.last))
		}
	}
	if len(all) == 0 {
		all = append(all, passes("the ledger has read everything"))
	}
	return worst(all...).with("streams", details)
}

func judgeGaps(streams []folded) judgement {
	all := []judgement{passes("the streams hold everything that the ledger has yet to read")}
	for _, f := range streams {
		switch {
		case f.last < f.applied:
			all = append(all, fails("%s ends at %d, and the ledger has read up to %d", f.stream, f.last, f.applied).with("stream", f.stream))
		case f.applied > 0 && f.first > f.applied+1:
			all = append(all, fails("%s begins at %d, and the ledger has read up to %d", f.stream, f.first, f.applied).with("stream", f.stream))
		}
	}
	return worst(all...)
}
