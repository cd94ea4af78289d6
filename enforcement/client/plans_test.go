package client_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/client"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

var _ enforcement.Plans = (*client.Plans)(nil)

// shelf is a source of plans that says what a test puts there.
type shelf struct {
	mu       sync.Mutex
	revision int64
	catalog  int64
	err      error // of the catalog's revision
}

func (s *shelf) put(change func(s *shelf)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *shelf) PlanInfo(_ context.Context, workspace string, at time.Time) (subscriptions.PlanInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return subscriptions.PlanInfo{
		WorkspaceID: workspace, Revision: s.revision, Period: subscriptions.CalendarMonth(at), Exact: true,
		Snapshot: subscriptions.Snapshot{PlanRevision: s.catalog},
	}, nil
}

func (s *shelf) CatalogRevision(context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.catalog, s.err
}

// plansOf runs Plans over the shelf until the test ends, and returns when they hear.
func plansOf(t *testing.T, o client.PlansOptions) *client.Plans {
	t.Helper()
	o.Log = schematest.Logger(t)
	p, err := client.NewPlans(o)
	if err != nil {
		t.Fatal(err)
	}
	runs(t, p.Run)
	// One for the catalog that was found, one for each source that is heard.
	eventually(t, "the plans are current", func() bool { return p.Stats().Expiries >= 2 })
	return p
}

// eventually asks again and again until it is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	schematest.Eventually(t, what, is)
}

func found(t *testing.T, p *client.Plans) subscriptions.PlanInfo {
	t.Helper()
	info, err := p.Lookup(t.Context(), "ws", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestPlansAreReadAgainWhenTheyAreInvalidated(t *testing.T) {
	t.Parallel()
	js, redis := plansStream(t), schematest.Redis(t)
	for where, c := range map[string]struct {
		options client.PlansOptions
		publish func(t *testing.T)
	}{
		"over NATS": {
			client.PlansOptions{JetStream: js},
			func(t *testing.T) { invalidate(t, js, "ws", 2) },
		},
		"over Redis": {
			client.PlansOptions{Redis: redis, RedisChannel: t.Name()},
			func(t *testing.T) {
				if err := redis.Publish(t.Context(), "TestPlansAreReadAgainWhenTheyAreInvalidated", eventBody(t, "ws", 2, time.Now())).Err(); err != nil {
					t.Fatal(err)
				}
			},
		},
	} {
		t.Run(where, func(t *testing.T) {
			s := &shelf{revision: 1, catalog: 1}
			c.options.Source = s
			p := plansOf(t, c.options)
			found(t, p)
			s.put(func(s *shelf) { s.revision = 2 })
			if info := found(t, p); info.Revision != 1 {
				t.Fatalf("revision %d before it was told", info.Revision)
			}
			c.publish(t)
			eventually(t, "the plan is read again", func() bool { return found(t, p).Revision == 2 })
			if s := p.Stats(); s.Expiries != 2 || s.Failed != 0 {
				t.Errorf("the counts are %+v, want that nothing but one plan was read again", s)
			}
		})
	}
}

func TestANewCatalogMakesAllPlansBeReadAgain(t *testing.T) {
	t.Parallel()
	s := &shelf{revision: 1, catalog: 1}
	p := plansOf(t, client.PlansOptions{Source: s, JetStream: plansStream(t)})
	found(t, p)
	s.put(func(s *shelf) { s.catalog, s.err = 2, errors.New("the database is away") })
	if info := found(t, p); info.Snapshot.PlanRevision != 1 {
		t.Fatalf("plan revision %d before it was looked for", info.Snapshot.PlanRevision)
	}
	s.put(func(s *shelf) { s.err = nil })
	eventually(t, "the new catalog is in force", func() bool { return found(t, p).Snapshot.PlanRevision == 2 })
}

func TestPlansNeedASourceAndSomewhereToHear(t *testing.T) {
	t.Parallel()
	js, redis := plansStream(t), schematest.Redis(t)
	for name, c := range map[string]struct {
		options client.PlansOptions
		isValid bool
	}{
		"nothing":                    {client.PlansOptions{}, false},
		"no source":                  {client.PlansOptions{JetStream: js}, false},
		"nowhere to hear":            {client.PlansOptions{Source: &shelf{}}, false},
		"Redis without a channel":    {client.PlansOptions{Source: &shelf{}, Redis: redis}, false},
		"a channel without Redis":    {client.PlansOptions{Source: &shelf{}, RedisChannel: "c"}, false},
		"NATS":                       {client.PlansOptions{Source: &shelf{}, JetStream: js}, true},
		"Redis and a channel":        {client.PlansOptions{Source: &shelf{}, Redis: redis, RedisChannel: "c"}, true},
		"NATS, Redis and no channel": {client.PlansOptions{Source: &shelf{}, JetStream: js, Redis: redis}, true},
	} {
		if _, err := client.NewPlans(c.options); (err == nil) != c.isValid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
