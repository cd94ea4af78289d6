package problems_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/guard"
	"github.com/headroomhq/headroom/enforcement/problems"
	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

func TestErrorsAreToldByWhatToDo(t *testing.T) {
	t.Parallel()
	wrapped := func(err error) error { return errors.Join(errors.New("step"), err) }
	for _, c := range []struct {
		err  error
		want string
	}{
		{&usage.InvalidArgument{Field: "quantity", Detail: "is wrong"}, "invalid-request"},
		{&usage.QuotaExceeded{Feature: "a"}, "quota-exceeded"},
		{&usage.QuotaExceeded{Feature: schemas.FeatureStorage}, "plan-storage-limit-reached"},
		{&usage.PolicyViolation{Unknown: true}, "policy-violation"},
		{&usage.ResourceLocked{}, "resource-locked"},
		{&usage.KeyReused{}, "idempotency-key-reused"},
		{usage.ErrUnavailable, "unavailable"},
		{enforcement.ErrUnavailable, "unavailable"},
		{enforcement.ErrStale, "unavailable"},
		{&guard.EntitlementLimitExceeded{Privilege: "a"}, "quota-exceeded"},
		{&guard.EntitlementLimitExceeded{Privilege: schemas.FeatureStorage}, "plan-storage-limit-reached"},
		{&guard.NotEntitled{}, "policy-violation"},
		{&guard.UnknownPrivilege{}, "policy-violation"},
		{&guard.TypeMismatch{}, "policy-violation"},
		{&guard.InvalidArgument{Field: "requested", Detail: "is wrong"}, "invalid-request"},
		{&guard.InvalidUsage{}, "internal-error"},
		{&guard.ProviderUnavailable{}, "unavailable"},
		{&guard.LockTimeout{}, "unavailable"},
		{&guard.LockUnavailable{Cause: errors.New("refused")}, "unavailable"},
		{&guard.OutcomeUnknown{Cause: errors.New("lost")}, "internal-error"},
		{guard.ErrNested, "internal-error"},
		{subscriptions.ErrStalePlan, "unavailable"},
		{subscriptions.ErrPeriodNotStarted, "unavailable"},
		{subscriptions.ErrNoDefaultPlan, "unavailable"},
		{subscriptions.ErrNotEntitled, "not-entitled"},
		{&pgconn.PgError{Code: "57P01"}, "unavailable"},
		{&pgconn.PgError{Code: "23505"}, "internal-error"},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, "unavailable"},
		{errors.New("secret cause"), "internal-error"},
	} {
		p := problems.Of(wrapped(c.err), "urn:x")
		if got := strings.TrimPrefix(p.Type, problems.Base); got != c.want || p.Instance != "urn:x" {
			t.Errorf("%v: got %s, instance %s; want %s", c.err, got, p.Instance, c.want)
		}
		if !errors.Is(p, c.err) {
			t.Errorf("%v is not in the chain of its problem", c.err)
		}
		if again := problems.Of(wrapped(p), "urn:y"); again.Type != p.Type || again.Instance != "urn:x" {
			t.Errorf("%v: told again it is %s of %s", c.err, again.Type, again.Instance)
		}
		if strings.Contains(p.Detail, "secret cause") {
			t.Errorf("the cause shows: %s", p.Detail)
		}
	}
	if p := problems.OfDecision(schemas.DecisionMade{Allowed: true}); p != nil {
		t.Errorf("a decision that allows is %v", p)
	}
}

func TestWhatGuardRefusesCarriesItsNumbers(t *testing.T) {
	t.Parallel()
	p := problems.Of(&guard.EntitlementLimitExceeded{
		Privilege: "seats", Limit: 3, Current: 5, Requested: 1, PlanKey: "free",
	}, "")
	if p.Status != 429 || p.Limit != "seats" || *p.LimitValue != 3 || *p.Used != 5 || *p.Remaining != 0 {
		t.Errorf("got %s", p.Body())
	}
	if !strings.Contains(p.UpgradeHint, "free") || !strings.Contains(p.UpgradeHint, "seats") {
		t.Errorf("hint is %q", p.UpgradeHint)
	}
	lost := problems.Of(&guard.OutcomeUnknown{Cause: errors.New("lost")}, "")
	if !strings.Contains(lost.Detail, "not known") || lost.RetryAfter(time.Now()) != 0 {
		t.Errorf("a lost commit is told as %q", lost.Detail)
	}
}
