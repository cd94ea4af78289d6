package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const recordGroups = "/v1/workspaces/ws/features/record_groups"

// TestADowngradeLocksTheNewestWhileCallersConsume goes from 10 record groups to 3, by
// command, while others ask over HTTP.
func TestADowngradeLocksTheNewestWhileCallersConsume(t *testing.T) {
	t.Parallel()
	i := newInstallation(t).guarded()
	i.must("plans", "apply", demoCatalog)
	i.must("workspaces", "assign", "ws", "--plan", "trial")
	s := i.serve()
	s.awaitStatus(http.StatusOK)
	c := newCaller(t, s.addr, engineToken)

	groups := raceForGroups(c, 30)
	if len(groups) != 10 {
		t.Fatalf("%d of 30 callers got one of 10 record groups", len(groups))
	}
	crowd := gather(c, groups)
	crowd.await("a caller is allowed to look", http.StatusOK)
	i.must("workspaces", "assign", "ws", "--plan", "free")
	crowd.await("a caller meets a lock", http.StatusLocked)

	assertLocked(c, 3, 10, groups[3:])
	for _, unlocked := range groups[:3] {
		c.refused("quota-exceeded", "POST", recordGroups+"/consume", consumption(unlocked, 0, time.Now()))
	}
	for _, locked := range groups[3:] {
		p, _ := c.refused("resource-locked", "POST", recordGroups+"/consume", consumption(locked, 1, time.Now()))
		if !strings.Contains(p.Detail, locked) || !strings.Contains(p.UpgradeHint, "release 7 of the other") || *p.LimitValue != 3 || *p.Used != 10 {
			t.Errorf("of %s the problem says %+v, want what unlocks it", locked, p)
		}
	}
	c.must(http.StatusOK, nil, "POST", recordGroups+"/release", consumption(groups[0], 1, time.Now()))
	assertLocked(c, 3, 9, groups[4:])
	crowd.disperse()

	i.must("workspaces", "assign", "ws", "--plan", "pro")
	assertLocked(c, 50, 9, nil)
	c.must(http.StatusOK, nil, "POST", recordGroups+"/consume", consumption(groups[9], 1, time.Now()))
	if err := s.end(); err != nil {
		t.Error(err)
	}
}

// raceForGroups has n callers consume at once, each for a group of its own, and returns
// whose groups there are, the oldest first.
func raceForGroups(c *caller, n int) []string {
	c.t.Helper()
	begun := time.Now().Add(-time.Hour)
	won := make([]bool, n)
	var racing sync.WaitGroup
	for k := range n {
		racing.Go(func() {
			a, err := c.try("POST", recordGroups+"/consume", consumption(fmt.Sprintf("group_%02d", k), 1, begun.Add(time.Duration(k)*time.Minute)))
			if won[k] = a.status == http.StatusOK; err != nil || !won[k] && a.status != http.StatusTooManyRequests {
				c.t.Errorf("consume: %d %s, %v", a.status, a.text, err)
			}
		})
	}
	racing.Wait()
	var groups []string
	for k := range n {
		if won[k] {
			groups = append(groups, fmt.Sprintf("group_%02d", k))
		}
	}
	return groups
}

// assertLocked holds the list of the resources against what is to be locked of them.
func assertLocked(c *caller, limit, used int64, locked []string) {
	c.t.Helper()
	var page struct {
		Used, Limit int64
		Resources   []struct {
			ResourceID string `json:"resource_id"`
			Locked     bool
			Reason     string
		}
	}
	c.must(http.StatusOK, &page, "GET", recordGroups+"/resources", "")
	var got []string
	for _, r := range page.Resources {
		if r.Locked {
			got = append(got, r.ResourceID)
		}
		if r.Locked != (r.Reason != "") {
			c.t.Errorf("%s is locked %t because %q", r.ResourceID, r.Locked, r.Reason)
		}
	}
	if page.Limit != limit || page.Used != used {
		c.t.Errorf("%d of %d are used, want %d of %d", page.Used, page.Limit, used, limit)
	}
	if d := cmp.Diff(locked, got); d != "" {
		c.t.Errorf("locked (-want +got):\n%s", d)
	}
}

// bystanders are callers who go on asking. None of them may get a unit.
type bystanders struct {
	t    testing.TB
	stop chan struct{}
	gone sync.WaitGroup

	mu   sync.Mutex
	seen []int
}

// gather has four callers ask for one more group and look after those there are, in turn.
func gather(c *caller, groups []string) *bystanders {
	all := &bystanders{t: c.t, stop: make(chan struct{})}
	for k := range 4 {
		all.gone.Go(func() {
			for n := k; ; n++ {
				select {
				case <-all.stop:
					return
				default:
				}
				all.ask(c, fmt.Sprintf("late_%d", n), 1, http.StatusTooManyRequests)
				all.ask(c, groups[n%len(groups)], 0, http.StatusOK, http.StatusTooManyRequests, http.StatusLocked)
			}
		})
	}
	c.t.Cleanup(all.disperse)
	return all
}

func (c *bystanders) ask(from *caller, group string, quantity int, may ...int) {
	a, err := from.try("POST", recordGroups+"/consume", consumption(group, quantity, time.Now()))
	if err != nil || !slices.Contains(may, a.status) {
		c.t.Errorf("%d of %s: %d %s, %v", quantity, group, a.status, a.text, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, a.status)
}

func (c *bystanders) await(what string, status int) {
	c.t.Helper()
	eventually(c.t, what, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return slices.Contains(c.seen, status)
	})
}

// disperse lets each finish what it asked.
func (c *bystanders) disperse() {
	select {
	case <-c.stop:
	default:
		close(c.stop)
	}
	c.gone.Wait()
}
