package guard_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/headroomhq/headroom/enforcement/guard"
	"github.com/headroomhq/headroom/subscriptions"
)

var (
	errStalePlan  = subscriptions.ErrStalePlan
	wrongPassword = &pgconn.PgError{Severity: "FATAL", Code: "28P01"}
	shutdown      = &pgconn.PgError{Severity: "FATAL", Code: "57P01"}
)

func TestErrorsSayWhatHappened(t *testing.T) {
	t.Parallel()
	cause := errors.New("the cause")
	tests := map[string]struct {
		err  error
		want string
	}{
		"exceeded":       {&guard.EntitlementLimitExceeded{Privilege: "projects", Scope: guard.ScopeSubject, Limit: 5, Current: 4, Requested: 2, PlanKey: "pro"}, "2 of projects asked for; 4 of the 5 that plan pro allows per subject are used"},
		"not entitled":   {&guard.NotEntitled{Organization: "org", Privilege: "projects", PlanKey: "free"}, "plan free of org does not grant projects"},
		"no plan":        {&guard.NotEntitled{Organization: "org", Privilege: "projects", Cause: cause}, "org is not granted projects: the cause"},
		"unknown":        {&guard.UnknownPrivilege{Privilege: "projetcs"}, "no plan knows privilege projetcs"},
		"wrong kind":     {&guard.TypeMismatch{Privilege: "sso", Kind: guard.KindBoolean}, "privilege sso is of kind boolean, and only a limit can be guarded"},
		"argument":       {&guard.InvalidArgument{Field: "organization", Detail: "is empty"}, "organization is empty"},
		"usage":          {&guard.InvalidUsage{Field: "total", Detail: "is negative"}, "usage from count: total is negative"},
		"provider":       {&guard.ProviderUnavailable{Organization: "org", Privilege: "projects", Cause: cause}, "limit of projects for org cannot be learned: the cause"},
		"lock timeout":   {&guard.LockTimeout{Key: "oe:org:projects", Domain: "database:app", Waited: 5 * time.Second, Cause: cause}, "lock oe:org:projects of database:app was not free within 5s"},
		"no lock":        {&guard.LockUnavailable{Key: "oe:org:projects", Domain: "database:app", Cause: cause}, "lock oe:org:projects of database:app cannot be taken: the cause"},
		"unknown commit": {&guard.OutcomeUnknown{Domain: "database:app", Cause: cause}, "commit in database:app was sent and its outcome is unknown: the cause"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.err.Error(); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if strings.Contains(tc.want, "the cause") && !errors.Is(tc.err, cause) {
				t.Error("the cause is not wrapped")
			}
		})
	}
}
