package enforcement_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// FuzzScripts drives the scripts and the model with the same history and wants
// the same answers at each step and the same usage at the end.
func FuzzScripts(f *testing.F) {
	f.Add([]byte{3, 2, 0, 0, 1, 0, 0, 2, 1, 1, 0, 0, 3, 1})
	f.Add([]byte{0, 0, 0, 0, 9, 4, 1, 9, 2, 2, 9, 2, 5, 0, 0})
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		history := make([]byte, 300)
		for i := range history {
			history[i] = byte(random.UintN(256))
		}
		f.Add(history)
	}
	f.Fuzz(func(t *testing.T, history []byte) {
		if len(history) > 2000 {
			history = history[:2000]
		}
		playHistory(t, history)
	})
}

// player takes a history's bytes as operations.
type player struct {
	t     *testing.T
	house *house
	model model
	rest  []byte
	epoch int
	// losses is how often Redis lost its memory.
	losses int
}

func playHistory(t *testing.T, history []byte) {
	p := &player{t: t, rest: history}
	limits := unlimited(func(l *schemas.Limits) {
		l.MaxExecutionPayloadSizeMB = schemas.LimitOf(1)
		l.MaxExecutions = p.limit(7)
		l.MaxConcurrentExecutions = p.limit(4)
		l.MaxExecutionsPerMinute = p.limit(5)
	})
	p.house = newHouse(t, limits, func(o *enforcement.Options) { o.RebuildFence = time.Millisecond })
	p.model = model{
		quota: limits.MaxExecutions, most: limits.MaxConcurrentExecutions, rate: limits.MaxExecutionsPerMinute,
		epoch: "epoch-1", used: map[string]int64{}, peak: map[string]int64{},
		allowed: map[string]*allowed{}, tombs: map[string]schemas.Outcome{}, denied: map[question]int{},
	}
	p.ask(question{"first", "0"}) // opens the workspace
	for len(p.rest) > 0 {
		switch p.next(8) {
		case 0, 1, 2:
			p.admitSome()
		case 3:
			p.releaseOne()
		case 4:
			p.withdrawOne()
		case 5:
			p.expireOrExtend()
		case 6:
			p.roll()
		case 7:
			p.lose()
		}
	}
	p.compareUsage()
}

// next is the next byte of the history below n, 0 at its end.
func (p *player) next(n byte) int {
	if len(p.rest) == 0 {
		return 0
	}
	b := p.rest[0]
	p.rest = p.rest[1:]
	return int(b % n)
}

// limit is unlimited, 0, or a small number: all three are limits of their own kind.
func (p *player) limit(n byte) schemas.Limit {
	if v := p.next(n + 1); v < int(n) {
		return schemas.LimitOf(int64(v))
	}
	return schemas.Unlimited
}

func (p *player) execution() string { return fmt.Sprintf("e%d", p.next(10)) }

func (p *player) question() question {
	return question{p.execution(), fmt.Sprintf("%d", p.next(4))}
}

// request of event 3 is the one with a payload over the limit.
func request(q question) (enforcement.Request, bool) {
	r := ask(q.execution, q.event)
	if q.event == "3" {
		r.PayloadBytes = 1<<20 + 1
	}
	return r, r.PayloadBytes > 0
}

func (p *player) ask(questions ...question) {
	p.t.Helper()
	requests := make([]enforcement.Request, len(questions))
	for i, q := range questions {
		requests[i], _ = request(q)
	}
	for i, got := range p.house.patient(p.t, requests...) {
		_, oversized := request(questions[i])
		code, replayed := p.model.admit(questions[i], oversized)
		d := got.Decision
		if got.Err != nil || d.Code != code || d.Allowed != (code == 0) || d.Replayed != replayed {
			p.t.Fatalf("admit %v: code %d, replayed %v, error %v; the model says code %d, replayed %v",
				questions[i], d.Code, d.Replayed, got.Err, code, replayed)
		}
	}
}

func (p *player) admitSome() {
	questions := make([]question, 1+p.next(4))
	for i := range questions {
		questions[i] = p.question()
	}
	p.ask(questions...)
}

func (p *player) releaseOne() {
	execution := p.execution()
	outcomes := []schemas.Outcome{schemas.OutcomeSucceeded, schemas.OutcomeNotStarted, schemas.OutcomeFailed, schemas.OutcomeCanceled}
	outcome := outcomes[p.next(4)]
	got, want := p.house.release(p.t, execution, outcome), p.model.release(execution, outcome)
	if got != want {
		p.t.Fatalf("release %s as %s: %+v, the model says %+v", execution, outcome, got, want)
	}
}

func (p *player) withdrawOne() {
	q := p.question()
	r, _ := request(q)
	got := p.house.Withdraw(p.t.Context(), []enforcement.Request{r})[0]
	if want := p.model.withdraw(q); got.Err != nil || got.Decision.Code != want {
		p.t.Fatalf("withdraw %v: code %d, error %v; the model says %d", q, got.Decision.Code, got.Err, want)
	}
}

func (p *player) expireOrExtend() {
	execution := p.execution()
	a := p.model.allowed[execution]
	if p.next(2) == 0 {
		p.house.expire(p.t, execution)
		if a != nil {
			a.live = false
		}
		return
	}
	got := p.house.Extend(p.t.Context(), []enforcement.Progress{{WorkspaceID: "ws", ExecutionID: execution}})[0]
	if want := a != nil && a.live; got.Err != nil || got.Live != want {
		p.t.Fatalf("extend %s: live %v, error %v; the model says %v", execution, got.Live, got.Err, want)
	}
}

// roll begins the next period; the request that opens it starts nothing new.
func (p *player) roll() {
	p.epoch++
	p.model.epoch = fmt.Sprintf("epoch-%d", p.epoch+1)
	p.house.plans.set(func(i *subscriptions.PlanInfo) {
		i.Revision++
		i.UsageEpoch = p.model.epoch
	})
	p.model.peak[p.model.epoch] = p.model.running()
	p.ask(question{fmt.Sprintf("roll-%d", p.epoch), "3"})
}

// lose has Redis lose its memory, or come back as another primary with what it knew. The
// ledger knows of all that was decided.
func (p *player) lose() {
	if _, bounded := p.model.rate.Value(); bounded {
		return // the ledger does not know the starts as the model does
	}
	p.losses++
	p.house.usage.mu.Lock()
	p.house.usage.known = map[string]enforcement.Usage{p.model.epoch: p.model.folded()}
	p.house.usage.mu.Unlock()
	if p.next(2) == 0 {
		p.house.forget(p.t)
		clear(p.model.denied)
	} else {
		p.house.age(p.t)
	}
	for _, a := range p.model.allowed {
		a.by = "" // who was told is not in the ledger
	}
	for epoch := range p.model.peak {
		if epoch != p.model.epoch {
			delete(p.model.peak, epoch)
		}
	}
	p.ask(question{fmt.Sprintf("lost-%d", p.losses), "3"})
}

func (p *player) compareUsage() {
	for epoch := range p.model.peak {
		got := p.house.outstanding(p.t, epoch)
		want := enforcement.Outstanding{
			Open: true, Used: p.model.used[epoch], Peak: p.model.peak[epoch], Running: p.model.running(),
		}
		if got != want {
			p.t.Fatalf("usage of %s: %+v, the model says %+v", epoch, got, want)
		}
	}
}
