package webhooks_test

import (
	"context"
	"flag"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
	"github.com/headroomhq/headroom/webhooks/stripetest"
)

var (
	runsFlag = flag.Int("runs", 0, "runs of the property test; 0 is as many as fit into its time")
	seedFlag = flag.Uint64("seed", 0, "the one run of the property test to repeat; 0 is a fresh choice")
)

const (
	propertyTime = 6 * time.Second
	lanes        = 2
)

// Whatever happens to a stream of events on its way, the rows are those of the oracle when
// all is settled: scenarios by chance, events shuffled, late, twice and of three API
// versions, sent at two doors and worked off by two workers; with an API some are lost,
// and every known subscription is asked for at last.
//
//	go test ./webhooks -run AnyStream -runs 2000
//	go test ./webhooks -run AnyStream -seed 1234      the run that failed
func TestAnyStreamEndsInTheRowsOfTheOracle(t *testing.T) {
	t.Parallel()
	if *seedFlag != 0 {
		newSite(t, subscriptions.Policy{}).run(t, *seedFlag)
		return
	}
	base := rand.Uint64N(1 << 40)
	var begun, ended atomic.Int64
	began := time.Now()
	more := func() (uint64, bool) {
		n := begun.Add(1)
		if *runsFlag > 0 {
			return base + uint64(n), n <= int64(*runsFlag)
		}
		return base + uint64(n), time.Since(began) < propertyTime
	}
	// Not t.Parallel: the lanes would wait for the tests beside this one.
	var all sync.WaitGroup
	for range lanes {
		all.Go(func() {
			t.Run("lane", func(t *testing.T) {
				s := newSite(t, subscriptions.Policy{})
				for seed, ok := more(); ok && !t.Failed(); seed, ok = more() {
					s.run(t, seed)
					ended.Add(1)
				}
			})
		})
	}
	all.Wait()
	t.Logf("%d runs of %d scenarios in %s, seeds from %d on", ended.Load(), len(scenarios()), time.Since(began).Round(time.Millisecond), base+1)
}

// stream is a run: a shop and what becomes of its events on their way.
type stream struct {
	*shop
	random *rand.Rand
	doors  []http.Handler
	// seen counts the events that have happened, held are those under way.
	seen int
	held []stripetest.Event
	sent []stripetest.Event
	// loses is whether some never arrive.
	loses bool
}

func (s *site) run(t *testing.T, seed uint64) {
	t.Helper()
	t.Run("seed", func(t *testing.T) {
		all := scenarios()
		c, keyless := all[seed%uint64(len(all))], seed/uint64(len(all))%2 == 1
		keyless = keyless && !c.needsAPI
		sh := s.of(t).open(shopOptions{keyless: keyless, workers: 2, live: c.live, stripe: stripetest.Options{Seed: seed, AfterDunning: c.dunning}})
		first := sh.door
		sh.receive(shopOptions{})
		st := &stream{
			shop: sh, random: rand.New(rand.NewPCG(seed, 0)), doors: []http.Handler{first, sh.door}, loses: !keyless,
		}
		defer func() {
			if t.Failed() {
				t.Logf("scenario %q, keyless %t: go test ./webhooks -run AnyStream -seed %d", c.name, keyless, seed)
			}
		}()
		c.play(st)
		st.flow(true)
		st.settle()
		if st.loses {
			for _, sub := range st.Subscriptions() {
				st.ask(sub)
			}
			st.settle()
		}
		st.compare()
	})
}

// flow lets what has happened come in: some of it, or at last all that is not lost.
func (st *stream) flow(all bool) {
	fresh := st.EventsFrom(st.seen)
	st.seen += len(fresh)
	if st.loses {
		fresh = stripetest.Dropped(fresh, 0.3, st.random)
	}
	st.held = append(st.held, stripetest.Shuffled(fresh, st.random)...)
	n := len(st.held)
	if !all {
		n = st.random.IntN(n + 1)
	}
	now := stripetest.Duplicated(st.held[:n], 0.3, st.random)
	for range min(len(st.sent), 2) { // some that were sent long ago, too
		now = append(now, st.sent[st.random.IntN(len(st.sent))])
	}
	st.sent, st.held = append(st.sent, st.held[:n]...), st.held[n:]
	st.send(now)
	if st.random.IntN(2) == 0 {
		st.settle()
	}
}

// send delivers at both doors at once.
func (st *stream) send(events []stripetest.Event) {
	endpoint := st.NewEndpoint(stripetest.EndpointOptions{
		URL: "http://headroom/webhooks/stripe", Secrets: []string{newSecret}, VersionOf: versionOf,
	})
	var doors sync.WaitGroup
	for i, door := range st.doors {
		doors.Go(func() {
			for n := i; n < len(events); n += len(st.doors) {
				request, err := endpoint.Request(context.Background(), events[n])
				if err != nil {
					st.Errorf("make the delivery: %v", err)
					return
				}
				answer := httptest.NewRecorder()
				door.ServeHTTP(answer, request)
				if answer.Code != http.StatusOK {
					st.Errorf("%s is answered %d %s", events[n].Type, answer.Code, answer.Body)
				}
			}
		})
	}
	doors.Wait()
}

// versionOf is one of three versions, the same for each delivery of an event.
func versionOf(e stripetest.Event) stripetest.Version {
	h := fnv.New32a()
	_, _ = h.Write([]byte(e.ID))
	return []stripetest.Version{stripetest.V20240620, stripetest.Basil, stripetest.Clover}[h.Sum32()%3]
}

// tick lets time pass and events come in.
func (st *stream) tick(d time.Duration) {
	st.pass(d)
	st.flow(false)
}
