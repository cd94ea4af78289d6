package consumers_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

const (
	rowOne = "0197c3f0-0000-7000-8000-00000000000a"
	rowTwo = "0197c3f0-0000-7000-8000-00000000000b"
)

// registry is the rows that a test says there are, and a plan cache. It is safe for
// concurrent use.
type registry struct {
	mu      sync.Mutex
	rows    map[string]subscriptions.PeriodRow
	away    error
	told    []string // workspaces and reasons
	dropped []int64  // revisions
}

func (r *registry) Periods(_ context.Context, ids []string) (map[string]subscriptions.PeriodRow, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := make(map[string]subscriptions.PeriodRow)
	for _, id := range ids {
		if row, ok := r.rows[id]; ok {
			found[id] = row
		}
	}
	return found, r.away
}

// Invalidate is that of a store; the cache's is another.
func (r *registry) Invalidate(_ context.Context, ws, reason string) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.away != nil {
		return 0, r.away
	}
	r.told = append(r.told, ws+" "+reason)
	for id, row := range r.rows {
		if row.WorkspaceID == ws {
			row.Revision++
			r.rows[id] = row
		}
	}
	return 0, nil
}

func (r *registry) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

type droppings struct{ *registry }

func (d droppings) Invalidate(_ string, revision int64) {
	d.set(func() { d.dropped = append(d.dropped, revision) })
}

func registryOf(rows ...subscriptions.PeriodRow) *registry {
	r := &registry{rows: make(map[string]subscriptions.PeriodRow)}
	for _, row := range rows {
		r.rows[row.ID] = row
	}
	return r
}

func (r *registry) follow(o *consumers.Options) { o.Renewals, o.Plans = r, droppings{r} }

// period is a row of acme that counts.
func period(id string) subscriptions.PeriodRow {
	return subscriptions.PeriodRow{ID: id, WorkspaceID: "acme", PeriodStart: renewedAt, Counts: true, Revision: 7}
}

var renewedAt = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// renew publishes a renewal of workspace acme, by the source.
func (w *world) renew(source, id, kind string) {
	w.Helper()
	event := schemas.NewEvent(source, "renewed-"+id+"-"+kind, time.Now(), schemas.SubscriptionRenewed{
		WorkspaceID: "acme", SubscriptionID: id, Kind: kind, PlanKey: "pro", PlanRevision: 1,
		PeriodStart: renewedAt, PeriodEnd: renewedAt.AddDate(0, 1, 0),
	})
	b, err := schemas.Encode(event)
	if err != nil {
		w.Fatal(err)
	}
	w.publish(w.topology.Renewed("acme"), b)
}

func TestWhatIsDoneWithARenewal(t *testing.T) {
	t.Parallel()
	closed := period(rowOne)
	closed.Counts = false
	for name, test := range map[string]struct {
		row          subscriptions.PeriodRow
		source, kind string
		opened, told []string
		dropped      []int64
	}{
		"ours":                     {period(rowOne), "headroom", "cycle", []string{"acme"}, nil, []int64{7}},
		"ours, overtaken":          {closed, "headroom", "cycle", nil, nil, []int64{7}},
		"ours, an end":             {closed, "headroom", "ended", nil, nil, []int64{7}},
		"somebody else's":          {period(rowOne), "billing", "cycle", []string{"acme"}, []string{"acme renewed by billing: cycle"}, []int64{8}},
		"somebody else's, an end":  {closed, "billing", "ended", nil, []string{"acme renewed by billing: ended"}, []int64{8}},
		"an end of what goes on":   {period(rowOne), "billing", "ended", nil, []string{"acme renewed by billing: ended"}, []int64{8}},
		"an id in capital letters": {period(rowOne), "headroom", "created", []string{"acme"}, nil, []int64{7}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, j, r := newWorld(t), &judge{}, registryOf(test.row)
			w.start(j, r.follow)
			id := rowOne
			if strings.Contains(name, "capital") {
				id = strings.ToUpper(id)
			}
			w.renew(test.source, id, test.kind)
			w.settled(schemas.ConsumerRenewed)
			if diff := cmp.Diff(test.opened, j.told(&j.opened)); diff != "" {
				t.Errorf("opened (-want +got):\n%s", diff)
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			if diff := cmp.Diff(test.told, r.told); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.dropped, r.dropped); diff != "" {
				t.Errorf("dropped from the cache below (-want +got):\n%s", diff)
			}
			if n := w.count(schemas.StreamDeadLetters); n != 0 {
				t.Errorf("%d dead letters, want none", n)
			}
		})
	}
}

func TestARenewalWaitsForItsRow(t *testing.T) {
	t.Parallel()
	w, j, r := newWorld(t), &judge{}, registryOf()
	c := w.start(j, r.follow, func(o *consumers.Options) { o.MaxAttempts = 1 })
	w.renew("billing", rowOne, "cycle")
	w.eventually("it was put off several times", func() bool { return c.Stats().Deferred() >= 3 })
	r.set(func() { r.rows[rowOne] = period(rowOne) })
	w.settled(schemas.ConsumerRenewed)
	if diff := cmp.Diff([]string{"acme"}, j.told(&j.opened)); diff != "" {
		t.Errorf("opened (-want +got):\n%s", diff)
	}
	if n := w.count(schemas.StreamDeadLetters); n != 0 {
		t.Errorf("%d dead letters, want none", n)
	}
}

func TestRenewalsThatAreGivenUp(t *testing.T) {
	t.Parallel()
	others := period(rowOne)
	others.WorkspaceID = "other"
	for name, test := range map[string]struct {
		body   string
		reason string
	}{
		"nonsense":                  {"nonsense", "syntax"},
		"a kind that there is not":  {"kind", "invalid"},
		"of a row that never comes": {rowTwo, "subscription " + rowTwo + " does not exist "},
		"of a row of another's":     {rowOne, "subscription " + rowOne + " does not belong to workspace acme"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, j, r := newWorld(t), &judge{}, registryOf(others)
			w.start(j, r.follow, func(o *consumers.Options) { o.RenewalPatience = 200 * time.Millisecond })
			switch test.body {
			case "nonsense":
				w.publish(w.topology.Renewed("acme"), []byte("nonsense"))
			case "kind":
				w.publish(w.topology.Renewed("acme"), []byte(`{"specversion":"1.0","id":"e","source":"billing","type":"headroom.subscription.renewed.v1",
					"data":{"workspace_id":"acme","subscription_id":"`+rowOne+`","kind":"often","plan_key":"pro","plan_revision":1,
					"period_start":"2026-11-01T00:00:00Z","period_end":"2026-12-01T00:00:00Z"}}`))
			default:
				w.renew("billing", test.body, "cycle")
			}
			letter := w.await(schemas.StreamDeadLetters, 1)[0]
			if want := w.topology.DeadLetter("subscriptions", "renewed"); letter.Subject != want {
				t.Errorf("subject %s, want %s", letter.Subject, want)
			}
			if got := letter.Header.Get("Headroom-Reason"); !strings.Contains(got, test.reason) {
				t.Errorf("reason %q, want %q in it", got, test.reason)
			}
			w.settled(schemas.ConsumerRenewed)
			if opened := j.told(&j.opened); len(opened) > 0 || len(r.told) > 0 {
				t.Errorf("opened %v, told %v, want nothing", opened, r.told)
			}
		})
	}
}

func TestARenewalWaitsForServicesForAsLongAsItTakes(t *testing.T) {
	t.Parallel()
	w, j, r := newWorld(t), &judge{}, registryOf(period(rowOne))
	gone := errors.New("away")
	away := true
	j.open = func(string) error {
		if away {
			return gone
		}
		return nil
	}
	r.away = gone
	c := w.start(j, r.follow, func(o *consumers.Options) { o.MaxAttempts, o.RenewalPatience = 1, time.Millisecond })
	w.renew("billing", rowOne, "cycle")
	w.eventually("it was put off while Postgres is away", func() bool { return c.Stats().Deferred() >= 4 })
	r.set(func() { r.away = nil })
	so := c.Stats().Deferred()
	w.eventually("it was put off while Redis is away", func() bool { return c.Stats().Deferred() >= so+4 })
	j.mu.Lock()
	away = false
	j.mu.Unlock()
	w.settled(schemas.ConsumerRenewed)
	if n := w.count(schemas.StreamDeadLetters); n != 0 {
		t.Errorf("%d dead letters, want none", n)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.told) != 1 {
		t.Errorf("told %d times, want once however often it came: %v", len(r.told), r.told)
	}
}

func TestRenewalsOfOneWorkspaceOpenItsPeriodTogether(t *testing.T) {
	t.Parallel()
	earlier := period(rowOne)
	earlier.Counts = false
	w, j, r := newWorld(t), &judge{}, registryOf(earlier, period(rowTwo))
	for i := range 20 {
		w.renew("headroom", []string{rowTwo, rowOne}[i%2], schemas.RenewalKinds[i%6])
	}
	w.start(j, r.follow, func(o *consumers.Options) { o.Workers = 1 })
	w.settled(schemas.ConsumerRenewed)
	if n := len(j.told(&j.opened)); n == 0 || n > 5 {
		t.Errorf("opened %d times, want once a batch", n)
	}
}

func TestRenewalsNeedAPlanCache(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := consumers.New(consumers.Options{NATS: w.nats, JetStream: w.js, Enforcer: &judge{}, Renewals: registryOf()})
	if err == nil || !strings.Contains(err.Error(), "Plans") {
		t.Errorf("error %v, want one that names Plans", err)
	}
}
