package subscriptions

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// waves is the publishing of a pass: wave after wave, each with the oldest news
// left of every workspace. A workspace's second is not sent before the
// first is acknowledged, because what is sent together over a connection that breaks
// may arrive without its beginning.
type waves struct {
	queues    map[string][]News
	taken     map[string]int
	relayed   Relayed
	published []string
}

// newWaves takes news by workspace and in the order of their positions.
func newWaves(claimed []News) *waves {
	w := &waves{queues: make(map[string][]News), taken: make(map[string]int)}
	for _, n := range claimed {
		w.queues[n.WorkspaceID] = append(w.queues[n.WorkspaceID], n)
		w.taken[n.WorkspaceID]++
	}
	if len(w.queues) == mostWorkspaces {
		w.relayed.Next = claimed[len(claimed)-1].WorkspaceID
	}
	return w
}

// publish goes on until all is published or has failed, or ctx ends.
func (w *waves) publish(ctx context.Context, p Publisher) {
	ctx, cancel := context.WithTimeout(ctx, publishPatience)
	defer cancel()
	for len(w.queues) > 0 && ctx.Err() == nil {
		wave := w.next()
		errs := p.PublishNews(ctx, wave)
		for i, n := range wave {
			w.settle(n, errs[i])
		}
	}
	w.relayed.More = w.relayed.More || len(w.queues) > 0
}

func (w *waves) next() []News {
	wave := make([]News, 0, len(w.queues))
	for _, queue := range w.queues {
		wave = append(wave, queue[0])
	}
	slices.SortFunc(wave, func(a, b News) int { return cmp.Compare(a.Position, b.Position) })
	return wave
}

// settle takes a piece of news out of its queue; one that failed takes those behind it along.
func (w *waves) settle(n News, err error) {
	r := &w.relayed
	if err != nil {
		r.Failed, r.Fault = r.Failed+1, err
		delete(w.queues, n.WorkspaceID)
		return
	}
	r.Published++
	w.published = append(w.published, n.ID)
	r.Oldest = earliest(r.Oldest, n.At)
	if w.queues[n.WorkspaceID] = w.queues[n.WorkspaceID][1:]; len(w.queues[n.WorkspaceID]) == 0 {
		delete(w.queues, n.WorkspaceID)
		r.More = r.More || w.taken[n.WorkspaceID] == mostOfWorkspace
	}
}

// earliest treats a zero known as none.
func earliest(known, at time.Time) time.Time {
	if known.IsZero() || at.Before(known) {
		return at
	}
	return known
}
