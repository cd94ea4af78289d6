package subscriptions_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/subscriptions"
)

func TestTheQuotaIntervalGoesFromTheCatalogIntoThePeriod(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	apply(t, s)
	before := assign(t, s, subscriptions.Assignment{Interval: "year", Now: now(t, pool)})
	if before.Snapshot.QuotaInterval != "" {
		t.Errorf("a plan without one gives %q", before.Snapshot.QuotaInterval)
	}
	changed := apply(t, s, "rank: 10", "rank: 10\n    quota_interval: month")
	want := []subscriptions.FieldChange{{Field: "quota_interval", To: "month"}}
	if diff := cmp.Diff(want, changed.Changes[1].Fields); diff != "" {
		t.Errorf("changed fields (-want +got):\n%s", diff)
	}
	if again := apply(t, s, "rank: 10", "rank: 10\n    quota_interval: month"); again.Revision != changed.Revision {
		t.Errorf("the same catalog again makes revision %d", again.Revision)
	}
	revisions, err := s.Plan(t.Context(), "pro")
	if err != nil || revisions[0].QuotaInterval != subscriptions.QuotaMonthly || revisions[1].QuotaInterval != "" {
		t.Errorf("revisions are %+v, %v", revisions, err)
	}
	if after := assign(t, s, subscriptions.Assignment{NewPeriod: true}); after.Snapshot.QuotaInterval != "month" {
		t.Errorf("the new period has %q", after.Snapshot.QuotaInterval)
	}
	if info := planInfo(t, s, now(t, pool)); info.Snapshot.QuotaInterval != "month" {
		t.Errorf("a decision would be measured against %q", info.Snapshot.QuotaInterval)
	}
}

func TestACatalogOfNoFileIsCheckedForItsQuotaInterval(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	catalog := parse(t, twoPlans)
	catalog.Plans[1].QuotaInterval = "week"
	var faulty *subscriptions.CatalogError
	if _, err := s.ApplyCatalog(t.Context(), catalog); !errors.As(err, &faulty) || faulty.Faults[0].Path != "plans.pro.quota_interval" {
		t.Errorf("applying it: %v, want a fault at plans.pro.quota_interval", err)
	}
}
