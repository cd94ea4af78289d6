package usage_test

import (
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

func TestConsumeCountsUpToTheLimit(t *testing.T) {
	t.Parallel()
	h := open(t, plan("free", features{"projects": 5}))
	five := schemas.LimitOf(5)
	for _, step := range []struct {
		quantity, used int64
		refused        bool
	}{
		{quantity: 0, used: 0},
		{quantity: 6, used: 0, refused: true},
		{quantity: 3, used: 3},
		{quantity: 3, used: 3, refused: true},
		{quantity: 0, used: 3},
		{quantity: 2, used: 5},
		{quantity: 0, used: 5},
		{quantity: 1, used: 5, refused: true},
		{quantity: math.MaxInt64, used: 5, refused: true},
	} {
		balance, err := h.consume(t, of("projects", step.quantity))
		if step.refused != errors.As(err, new(*usage.QuotaExceeded)) || !step.refused && err != nil {
			t.Fatalf("%d more: %v, want refused: %v", step.quantity, err, step.refused)
		}
		if want := (usage.Balance{Used: step.used, Limit: five}); err == nil && balance != want {
			t.Errorf("%d more: balance %+v, want %+v", step.quantity, balance, want)
		}
		h.wantUsed(t, "projects", step.used)
	}
}

func TestARefusedFirstUseLeavesNoRow(t *testing.T) {
	t.Parallel()
	h := open(t, plan("free", features{"projects": 5}))
	if _, err := h.consume(t, of("projects", 6)); err == nil {
		t.Fatal("6 of 5 were consumed")
	}
	if _, err := h.consume(t, of("projects", 0)); err != nil {
		t.Fatal(err)
	}
	if n := h.count(t, `select count(*) from usage_counters`); n != 0 {
		t.Errorf("%d counters, want none", n)
	}
}

// each runs n callers at once and counts the successes; all other errors are failures.
func each(t *testing.T, n int, call func(i int) error) int {
	t.Helper()
	var mu sync.Mutex
	var wait sync.WaitGroup
	done := 0
	start := make(chan struct{})
	for i := range n {
		wait.Go(func() {
			<-start
			err := call(i)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				done++
			} else if !errors.As(err, new(*usage.QuotaExceeded)) {
				t.Error(err)
			}
		})
	}
	close(start)
	wait.Wait()
	return done
}

func TestFirstUsesAtOnceStayWithinTheLimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ limit, quantity, wins int64 }{
		"one at a time":         {5, 1, 5},
		"three of five":         {5, 3, 1},
		"more than the limit":   {5, 6, 0},
		"nothing is allowed":    {0, 1, 0},
		"all of it in one":      {5, 5, 1},
		"there is no limit":     {-1, 3, 40},
		"the last one does fit": {9, 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, plan("free", features{"projects": c.limit}))
			wins := each(t, 40, func(int) error {
				_, err := h.consume(t, of("projects", c.quantity))
				return err
			})
			if int64(wins) != c.wins {
				t.Errorf("%d callers won, want %d", wins, c.wins)
			}
			h.wantUsed(t, "projects", c.wins*c.quantity)
			if rows := h.count(t, `select count(*) from usage_counters`); rows != min(c.wins, 1) {
				t.Errorf("%d rows of one counter that %d have used", rows, c.wins)
			}
		})
	}
}

func TestRollbackGivesBack(t *testing.T) {
	t.Parallel()
	h := open(t, plan("free", features{"projects": 5}))
	for _, before := range []int64{0, 2} {
		h.must(t, of("projects", before))
		failed := errors.New("the insert of the caller failed")
		err := pgx.BeginFunc(t.Context(), h.pool, func(tx pgx.Tx) error {
			balance, err := h.Consume(t.Context(), tx, usage.Change{WorkspaceID: "w", Feature: "projects", Quantity: 1, ResourceID: "p1"})
			if err != nil || balance.Used != before+1 {
				t.Errorf("balance %+v, %v, want %d used", balance, err, before+1)
			}
			return failed
		})
		if !errors.Is(err, failed) {
			t.Fatal(err)
		}
		h.wantUsed(t, "projects", before)
		if n := h.count(t, `select count(*) from usage_resources`); n != 0 {
			t.Errorf("%d resources after the rollback, want none", n)
		}
	}
}

func TestUnlimitedIsCounted(t *testing.T) {
	t.Parallel()
	h := open(t, plan("free", features{"projects": -1}), plan("small", features{"projects": 3}))
	if balance, err := h.consume(t, of("projects", 7)); err != nil || balance.Used != 7 || balance.Remaining() != nil {
		t.Errorf("balance %+v, %v", balance, err)
	}
	h.assign(t, "w", "small")
	var exceeded *usage.QuotaExceeded
	if _, err := h.consume(t, of("projects", 1)); !errors.As(err, &exceeded) || exceeded.Used != 7 || exceeded.Remaining() != 0 {
		t.Errorf("on the small plan: %v, want 7 used and nothing left", err)
	}
	if _, err := h.consume(t, of("projects", 0)); !errors.As(err, &exceeded) {
		t.Errorf("a probe above the limit: %v", err)
	}
}

func TestCountersEndWithoutOverflow(t *testing.T) {
	t.Parallel()
	const most = math.MaxInt64
	pool := schematest.Postgres(t)
	for name, c := range map[string]struct {
		limit, used, quantity int64
		want                  any // nil, or the error to find
	}{
		"the last unit of the largest limit":      {most, most - 1, 1, nil},
		"one more than the largest limit":         {most, most, 1, new(*usage.QuotaExceeded)},
		"all of the largest limit in one":         {most, 0, most, nil},
		"all of it when one is used":              {most, 1, most, new(*usage.QuotaExceeded)},
		"the largest quantity of a small limit":   {5, 3, most, new(*usage.QuotaExceeded)},
		"the largest quantity of nothing":         {0, 0, most, new(*usage.QuotaExceeded)},
		"the last unit that can be counted":       {-1, most - 1, 1, nil},
		"more than can be counted":                {-1, most, 1, new(*usage.InvalidArgument)},
		"much more than can be counted":           {-1, most, most, new(*usage.InvalidArgument)},
		"a probe of a counter that is at its end": {-1, most, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := fixedOn(t, pool, features{"projects": c.limit})
			if _, err := pool.Exec(t.Context(), `delete from usage_counters`); err != nil {
				t.Fatal(err)
			}
			if c.used > 0 {
				_, err := h.pool.Exec(t.Context(), `insert into usage_counters (workspace_id, feature_key, count) values ('w', 'projects', $1)`, c.used)
				if err != nil {
					t.Fatal(err)
				}
			}
			check := func(door string, err error) {
				t.Helper()
				if c.want == nil && err != nil || c.want != nil && !errors.As(err, c.want) {
					t.Errorf("%s: %v, want %T", door, err, c.want)
				}
			}
			verdicts, err := h.Check(t.Context(), []usage.Change{of("projects", c.quantity)})
			if err != nil {
				t.Fatal(err)
			}
			check("check", verdicts[0].Err)
			_, err = h.consume(t, of("projects", c.quantity))
			check("consume", err)
			want := c.used
			if c.want == nil {
				want += c.quantity
			}
			h.wantUsed(t, "projects", want)
			h.release(t, of("projects", most))
			h.wantUsed(t, "projects", 0)
		})
	}
}

func TestReleaseNeverGoesBelowZero(t *testing.T) {
	t.Parallel()
	h := open(t, plan("free", features{"projects": 5, "emails": 5}))
	for _, feature := range []string{"projects", "emails"} {
		if balance := h.release(t, of(feature, 3)); balance.Used != 0 {
			t.Errorf("balance %+v of %s, which was never used", balance, feature)
		}
		h.must(t, of(feature, 4))
		for _, step := range [][2]int64{{0, 4}, {1, 3}, {2, 1}, {5, 0}, {1, 0}} {
			if balance := h.release(t, of(feature, step[0])); balance.Used != step[1] || balance.Limit != schemas.LimitOf(5) {
				t.Errorf("after %d of %s: %+v, want %d used", step[0], feature, balance, step[1])
			}
		}
	}
	h.must(t, of("projects", 5))
	each(t, 20, func(int) error { h.release(t, of("projects", 2)); return nil })
	h.wantUsed(t, "projects", 0)
	if n := h.count(t, `select count(*) from usage_counters where feature_key = 'emails' and usage_epoch like 'default.%' and period_start > '-infinity'`); n != 1 {
		t.Errorf("%d counters of a flow with its epoch and period, want 1", n)
	}
}

func TestStorageIsCountedInBytes(t *testing.T) {
	t.Parallel()
	h := open(t, plan("free", features{schemas.FeatureStorage: 2}))
	if used := h.must(t, of(schemas.FeatureStorage, 2<<20)); used != 2<<20 {
		t.Errorf("%d bytes used", used)
	}
	want := &usage.QuotaExceeded{
		WorkspaceID: "w", Feature: schemas.FeatureStorage, PlanKey: "free", Used: 2 << 20, Limit: 2 << 20, Requested: 1,
	}
	_, err := h.consume(t, of(schemas.FeatureStorage, 1))
	var got *usage.QuotaExceeded
	if !errors.As(err, &got) {
		t.Fatalf("one byte too many: %v", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("refusal (-want +got):\n%s", diff)
	}
	odd, _ := fixedOn(t, h.pool, features{schemas.FeatureStorage: math.MaxInt64})
	if balance, err := odd.consume(t, of(schemas.FeatureStorage, 1)); err != nil || balance.Limit != schemas.LimitOf(math.MaxInt64) {
		t.Errorf("a limit of more bytes than can be counted: %+v, %v", balance, err)
	}
}

func TestEveryRefusalSaysWhy(t *testing.T) {
	t.Parallel()
	h := open(t, plan("free", features{"projects": 2, "emails": 2, "sso": -1}))
	h.must(t, of("projects", 1))
	h.must(t, of("emails", 1))
	monthEnd := time.Now().UTC().AddDate(0, 0, 1-time.Now().UTC().Day()).Truncate(24*time.Hour).AddDate(0, 1, 0)
	for name, c := range map[string]struct {
		change usage.Change
		want   error
		text   string
	}{
		"no room in a stock": {of("projects", 2), &usage.QuotaExceeded{
			WorkspaceID: "w", Feature: "projects", PlanKey: "free", Used: 1, Limit: 2, Requested: 2,
		}, "2 of projects asked for; 1 of the 2 that plan free allows are used"},
		"no room in a flow": {of("emails", 2), &usage.QuotaExceeded{
			WorkspaceID: "w", Feature: "emails", PlanKey: "free", Used: 1, Limit: 2, Requested: 2, ResetsAt: &monthEnd,
		}, "2 of emails"},
		"not in the plan": {of("seats", 1), &usage.PolicyViolation{WorkspaceID: "w", Feature: "seats", PlanKey: "free"}, "plan free does not include feature seats"},
		"not in the plan, and nothing is asked for": {of("seats", 0), &usage.PolicyViolation{WorkspaceID: "w", Feature: "seats", PlanKey: "free"}, "does not include"},
		"not counted":            {of("sso", 1), &usage.PolicyViolation{WorkspaceID: "w", Feature: "sso", PlanKey: "free", Uncounted: true}, "can't be counted"},
		"in no plan":             {of("saets", 1), &usage.PolicyViolation{WorkspaceID: "w", Feature: "saets", PlanKey: "free", Unknown: true}, "no plan of the catalog"},
		"a negative quantity":    {of("projects", -1), &usage.InvalidArgument{Field: "quantity", Detail: "must not be negative; what is given back is released"}, "quantity must"},
		"a workspace with a dot": {usage.Change{WorkspaceID: "a.b", Feature: "projects"}, &usage.InvalidArgument{Field: "workspace", Detail: idRule}, "workspace must"},
		"no feature":             {usage.Change{WorkspaceID: "w"}, &usage.InvalidArgument{Field: "feature", Detail: idRule}, "feature must"},
		"a resource with a blank": {
			usage.Change{WorkspaceID: "w", Feature: "projects", ResourceID: "p 1"}, &usage.InvalidArgument{Field: "resource_id", Detail: idRule}, "resource_id must",
		},
		"a year that no table holds": {
			usage.Change{WorkspaceID: "w", Feature: "projects", ResourceID: "p1", CreatedAt: time.Date(300000, 1, 1, 0, 0, 0, 0, time.UTC)},
			&usage.InvalidArgument{Field: "created_at", Detail: "must be of the years 1 to 9999"}, "created_at",
		},
		"a year that ends elsewhere than in UTC": {
			usage.Change{WorkspaceID: "w", Feature: "projects", ResourceID: "p1", CreatedAt: time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("", -3600))},
			&usage.InvalidArgument{Field: "created_at", Detail: "must be of the years 1 to 9999"}, "created_at",
		},
		"a year that begins elsewhere than in UTC": {
			usage.Change{WorkspaceID: "w", Feature: "projects", ResourceID: "p1", CreatedAt: time.Date(1, 1, 1, 0, 30, 0, 0, time.FixedZone("", 3600))},
			&usage.InvalidArgument{Field: "created_at", Detail: "must be of the years 1 to 9999"}, "created_at",
		},
		"a resource of a flow": {
			usage.Change{WorkspaceID: "w", Feature: "emails", ResourceID: "p1", Quantity: 1},
			&usage.InvalidArgument{Field: "resource_id", Detail: "must be left out: emails begins anew with each period, and nothing is left to lock"}, "resource_id",
		},
	} {
		t.Run(name, func(t *testing.T) {
			doors := map[string]func() error{
				"consume": func() error { _, err := h.consume(t, c.change); return err },
				"once":    func() error { _, err := h.ConsumeOnce(t.Context(), usage.Once{}, c.change); return err },
				"all": func() error {
					return h.in(t, func(tx pgx.Tx) error { _, err := h.ConsumeAll(t.Context(), tx, []usage.Change{c.change}); return err })
				},
				"check": func() error {
					verdicts, err := h.Check(t.Context(), []usage.Change{c.change})
					if err != nil {
						t.Fatal(err)
					}
					return verdicts[0].Err
				},
			}
			for door, call := range doors {
				err := call()
				if diff := cmp.Diff(c.want, typed(err)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", door, diff)
				}
				if err == nil || !strings.Contains(err.Error(), c.text) {
					t.Errorf("%s says %q, want %q in it", door, err, c.text)
				}
			}
		})
	}
	h.wantUsed(t, "projects", 1)
}

const idRule = "must be 1 to 128 letters, digits, dashes and underscores, the first a letter or digit"

// typed is the answer in an error, without what is wrapped around it.
func typed(err error) error {
	var (
		quota   *usage.QuotaExceeded
		policy  *usage.PolicyViolation
		locked  *usage.ResourceLocked
		invalid *usage.InvalidArgument
		reused  *usage.KeyReused
	)
	switch {
	case errors.As(err, &quota):
		return quota
	case errors.As(err, &policy):
		return policy
	case errors.As(err, &locked):
		return locked
	case errors.As(err, &invalid):
		return invalid
	case errors.As(err, &reused):
		return reused
	default:
		return err
	}
}

func TestRefusalsLeaveTheTransactionUsable(t *testing.T) {
	t.Parallel()
	h := open(t, plan("free", features{"projects": 2, "sso": -1}))
	err := h.in(t, func(tx pgx.Tx) error {
		for _, c := range []usage.Change{of("projects", 3), of("seats", 1), of("sso", 1), of("nothing", 1), of("projects", -1)} {
			if _, err := h.Consume(t.Context(), tx, c); err == nil {
				t.Errorf("%+v was consumed", c)
			}
			if _, err := h.ConsumeAll(t.Context(), tx, []usage.Change{of("projects", 1), c}); err == nil {
				t.Errorf("%+v was consumed", c)
			}
		}
		_, err := h.Consume(t.Context(), tx, of("projects", 2))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	h.wantUsed(t, "projects", 2)
}
