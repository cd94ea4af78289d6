package consumers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

func TestEachInvalidationIsBroadcastOnceTheStreamHasIt(t *testing.T) {
	t.Parallel()
	n := newNewsroom(t)
	n.mustWrite("ws000", 6) // three of them renewals
	n.mustWrite("ws001", 2)
	heard := make(chan []byte, 10)
	n.relay(func(o *consumers.RelayOptions) {
		o.Broadcast = func(_ context.Context, body []byte) error {
			heard <- body
			return nil
		}
	})
	var got, want []string
	for range 4 {
		select {
		case body := <-heard:
			got = append(got, string(body))
		case <-time.After(patience):
			t.Fatalf("%d were broadcast, want 4", len(got))
		}
	}
	for _, m := range n.stored(schemas.StreamPlans) {
		want = append(want, string(m.Data))
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("broadcast (-as stored +got):\n%s", diff)
	}
	n.drained()
	select {
	case body := <-heard:
		t.Errorf("and then %s", body)
	default:
	}
}

func TestABroadcastThatFailsOrHangsKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	for name, broadcast := range map[string]func(ctx context.Context, body []byte) error{
		"fails": func(context.Context, []byte) error { return errors.New("redis is away") },
		"hangs": func(ctx context.Context, _ []byte) error {
			<-ctx.Done()
			return ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNewsroom(t)
			n.mustWrite("ws000", 200)
			r, stop := n.relayOf(func(o *consumers.RelayOptions) { o.Broadcast = broadcast })
			n.drained()
			n.expectAllOnce(200)
			if published := r.Stats().Published(); published != 200 {
				t.Errorf("%d published, want 200", published)
			}
			began := time.Now()
			stop()
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("the relay took %s to end", took)
			}
			if s := r.Stats(); s.Unheard() == 0 || s.Broadcast() != 0 || s.Failed() != 0 {
				t.Errorf("broadcast %d, unheard %d, failed %d", s.Broadcast(), s.Unheard(), s.Failed())
			}
		})
	}
}

func TestWhatWaitsInTheOutboxIsCounted(t *testing.T) {
	t.Parallel()
	n := &newsroom{world: &world{TB: t}, address: schematest.PostgresURL(t), pool: schematest.Postgres(t)}
	o := subscriptions.NewOutbox(n.pool)
	waiting := func() subscriptions.Waiting {
		t.Helper()
		w, err := o.Waiting(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	if w := waiting(); w != (subscriptions.Waiting{}) {
		t.Errorf("of an empty outbox %+v waits", w)
	}
	n.mustWrite("ws000", 3)
	if _, err := n.pool.Exec(t.Context(), `UPDATE outbox SET created_at = created_at - interval '1 hour' WHERE position = 2`); err != nil {
		t.Fatal(err)
	}
	if w := waiting(); w.News != 3 || w.Oldest < time.Hour || w.Oldest > time.Hour+patience {
		t.Errorf("%+v waits, want 3, the oldest for an hour", w)
	}
	if _, err := n.pool.Exec(t.Context(), `UPDATE outbox SET published_at = now() WHERE position = 2`); err != nil {
		t.Fatal(err)
	}
	if w := waiting(); w.News != 2 || w.Oldest > patience {
		t.Errorf("%+v waits, want 2, none for long", w)
	}
}
