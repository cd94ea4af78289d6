package webhooks_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/headroomhq/headroom/webhooks"
	"github.com/headroomhq/headroom/webhooks/stripetest"
)

// imported is how many subscriptions a company has that comes to Headroom late.
const imported = 20_000

// What a first import takes, with no limit of its own to the rate; and that one which is
// interrupted half way and begun anew comes to the same rows.
func BenchmarkFirstImport(b *testing.B) {
	var straight, interrupted map[string]newestRow
	b.Run("straight", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			o := newOffice(b)
			populate(o, imported)
			stop := o.work()
			b.StartTimer()
			report := o.sync()
			b.StopTimer()
			stop()
			if report.Imported != imported {
				b.Fatalf("the import came to %+v", report)
			}
			b.ReportMetric(float64(len(o.stripe.Calls()))/imported, "calls/subscription")
			straight = o.rows()
			b.StartTimer()
		}
		b.ReportMetric(imported*float64(b.N)/b.Elapsed().Seconds(), "subscriptions/s")
	})
	b.Run("interrupted", func(b *testing.B) {
		for b.Loop() {
			o := newOffice(b)
			resumed := importInterrupted(o, imported)
			b.ReportMetric(float64(resumed.Listed), "listed_by_the_second_half")
			interrupted = o.rows()
		}
		if diff := cmp.Diff(byWorkspace(straight), byWorkspace(interrupted)); diff != "" || len(interrupted) != imported {
			b.Fatalf("%d rows differ (-straight +interrupted):\n%.2000s", len(interrupted), diff)
		}
	})
}

const (
	burst       = 5_000
	burstAtOnce = 16
)

// A burst as at the first of a month: how long an answer takes, how many events a second
// come to their rows, and what that asks of Stripe's API; beside it plain inserts of the
// same bodies.
func BenchmarkBurst(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		o := newOffice(b)
		events := o.happen(b)
		plain := o.insertPlainly(b, events)
		o.stripe.ForgetCalls()
		stop := o.work()
		b.StartTimer()
		begun := time.Now()
		took := o.deliverAtOnce(b, events)
		stored := time.Since(begun)
		o.idle()
		through := time.Since(begun)
		b.StopTimer()
		stop()
		slices.Sort(took)
		if rows := len(o.rows()); rows != burst/4 {
			b.Fatalf("%d rows, want %d", rows, burst/4)
		}
		rate := burst / stored.Seconds()
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99_answer_ms")
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50_answer_ms")
		b.ReportMetric(rate, "events_stored/s")
		b.ReportMetric(burst/through.Seconds(), "events_to_rows/s")
		b.ReportMetric(plain, "plain_inserts/s")
		b.ReportMetric(rate/plain, "ratio_to_plain")
		b.ReportMetric(float64(len(o.stripe.Calls()))/burst, "calls/event")
		b.StartTimer()
	}
}

// happen makes the events: each new subscription tells of itself four times.
func (o *office) happen(b *testing.B) []stripetest.Event {
	b.Helper()
	before := len(o.stripe.Events())
	populate(o, burst/4)
	var events []stripetest.Event
	for _, e := range o.stripe.EventsFrom(before) {
		if slices.Contains(webhooks.EventTypes(), e.Type) {
			events = append(events, e)
		}
	}
	if len(events) != burst {
		b.Fatalf("%d events, want %d", len(events), burst)
	}
	return events
}

func (o *office) insertPlainly(b *testing.B, events []stripetest.Event) float64 {
	b.Helper()
	if _, err := o.pool.Exec(b.Context(), `CREATE TABLE plain (id text PRIMARY KEY, body bytea)`); err != nil {
		b.Fatal(err)
	}
	begun := time.Now()
	atOnce(b, events, func(e stripetest.Event) error {
		_, err := o.pool.Exec(b.Context(), `INSERT INTO plain VALUES ($1, $2)`, e.ID, e.Body(stripetest.V20240620))
		return err
	})
	return float64(len(events)) / time.Since(begun).Seconds()
}

func (o *office) deliverAtOnce(b *testing.B, events []stripetest.Event) []time.Duration {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: burstAtOnce}}
	defer client.CloseIdleConnections()
	took := make(chan time.Duration, len(events))
	atOnce(b, events, func(e stripetest.Event) error {
		request, err := o.endpoint.Request(b.Context(), e)
		if err != nil {
			return err
		}
		begun := time.Now()
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		var answer bytes.Buffer
		if _, err := io.Copy(&answer, response.Body); err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("answered %d %s", response.StatusCode, answer.String())
		}
		took <- time.Since(begun)
		return nil
	})
	close(took)
	var all []time.Duration
	for d := range took {
		all = append(all, d)
	}
	return all
}

func atOnce(b *testing.B, events []stripetest.Event, do func(stripetest.Event) error) {
	b.Helper()
	var all errgroup.Group
	all.SetLimit(burstAtOnce)
	for _, e := range events {
		all.Go(func() error { return do(e) })
	}
	if err := all.Wait(); err != nil {
		b.Fatal(err)
	}
}
