package main

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
)

// How far a clock may be from this machine's. Deadlines, graces and which period an
// instant falls into are reckoned in seconds; a minute is a period's edge missed.
const (
	clockWarn = time.Second
	clockFail = time.Minute
	// clockLooks is how often a clock is read: the reading with the shortest way counts.
	clockLooks = 3
)

func clockDiagnoses() []diagnosis {
	const service = "clocks"
	const fails, warns = "the clock is more than a minute from this machine's", "more than a second"
	const remedy = "keep the clocks of both machines with NTP (chrony, systemd-timesyncd)"
	return []diagnosis{
		{"clocks.redis", service, fails, warns, remedy},
		{"clocks.postgres", service, fails, warns, remedy},
		{"clocks.nats", service, fails, warns, remedy},
	}
}

// clockChecks read the clocks of the services that answer.
func (d *doctor) clockChecks() []examination {
	var checks []examination
	if d.redis != nil {
		checks = append(checks, examination{"clocks.redis", func(ctx context.Context) judgement { return d.clock(ctx, d.redis.time) }})
	}
	if d.db != nil {
		checks = append(checks, examination{"clocks.postgres", func(ctx context.Context) judgement { return d.clock(ctx, d.db.time) }})
	}
	if d.nats != nil && d.nats.accountErr == nil && d.nats.streamsErr == nil {
		stream := d.config.topology().Stream(schemas.StreamDecisions)
		checks = append(checks, examination{"clocks.nats", func(ctx context.Context) judgement {
			return d.clock(ctx, func(ctx context.Context) (time.Time, error) { return d.nats.time(ctx, stream) })
		}})
	}
	return checks
}

func (p *redisPatient) time(ctx context.Context) (time.Time, error) {
	return p.client.Time(ctx).Result()
}

func (p *postgresPatient) time(ctx context.Context) (at time.Time, err error) {
	err = p.pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&at)
	return at, err
}

// time is that of the server that answers for a stream.
func (p *natsPatient) time(ctx context.Context, stream string) (time.Time, error) {
	is, err := p.js.Stream(ctx, stream)
	if err != nil {
		return time.Time{}, err
	}
	return is.CachedInfo().TimeStamp, nil
}

// clockReading is how far a clock is ahead, give or take half of the way there and back.
type clockReading struct{ ahead, way time.Duration }

// clock reads a clock a few times and judges the best reading.
func (d *doctor) clock(ctx context.Context, read func(context.Context) (time.Time, error)) judgement {
	var best clockReading
	for look := range clockLooks {
		asked, began := d.now(), time.Now()
		there, err := read(ctx)
		way := time.Since(began)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return unknowable("the clock cannot be read before there are streams, see nats.streams")
		}
		if err != nil {
			return unasked(err)
		}
		if look == 0 || way < best.way {
			best = clockReading{ahead: there.Sub(asked.Add(way / 2)), way: way}
		}
	}
	return judgeClock(best)
}

func judgeClock(r clockReading) judgement {
	certain := max(r.ahead.Abs()-r.way/2, 0)
	where := "ahead of"
	if r.ahead < 0 {
		where = "behind"
	}
	return judged(byAge(certain, clockWarn, clockFail), "%s %s this machine's, give or take %s", brief(r.ahead.Abs()), where, brief(r.way/2)).
		with("ahead_seconds", r.ahead.Seconds()).with("round_trip_seconds", r.way.Seconds())
}
