package api_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
)

func TestACheckAnswersEachProbeByItself(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	row := l.assign("ws", "pro")
	l.start("ws", "a", "b")
	for i := range 4 {
		l.consume("ws", "automations", 1, fmt.Sprintf("robot-%d", i))
	}
	l.consume("ws", "emails", 98, "")
	l.consume("ws", schemas.FeatureStorage, 10*schemas.BytesPerMegabyte, "")
	three, none := int64(3), int64(0)
	resets := quoted(row.PeriodEnd)
	before := l.view("ws")
	got, err := l.Check(t.Context(), "ws", []api.Probe{
		{Feature: "automations"},
		{Feature: "automations", Quantity: &three},
		{Execution: true},
		{Feature: "emails", Quantity: &three},
		{Feature: "seats"},
		{Feature: "sso"},
		{Feature: "audit"},
		{Feature: schemas.FeatureStorage, Quantity: &none},
		{Feature: schemas.FeatureStorage},
		{Execution: true, PayloadBytes: 51 << 20},
		{Feature: "robots"},
		{Feature: "automations"},
	})
	if err != nil {
		t.Fatal(err)
	}
	const refused = `"allowed": false, "code": 0`
	const allowed = `"allowed": true, "code": 0, "error": "", "message": ""`
	automation := `{"feature": "automations", ` + allowed + `, "used": 4, "limit": 5, "unlimited": false, "remaining": 1, "resets_at": null}`
	golden(t, "the answers", `[`+strings.Join([]string{
		automation,
		`{"feature": "automations", ` + refused + `, "error": "QuotaExceeded", "message": "3 of automations asked for; 4 of the 5 that plan pro allows are used",
			"used": 4, "limit": 5, "unlimited": false, "remaining": 1, "resets_at": null}`,
		`{"execution": true, "allowed": true, "code": 0, "error": "", "message": "Allowed.", "used": 2, "limit": 100, "unlimited": false, "remaining": 98, "resets_at": ` + resets + `}`,
		`{"feature": "emails", ` + refused + `, "error": "QuotaExceeded", "message": "3 of emails asked for; 98 of the 100 that plan pro allows are used",
			"used": 98, "limit": 100, "unlimited": false, "remaining": 2, "resets_at": ` + resets + `}`,
		`{"feature": "seats", ` + allowed + `, "used": 0, "limit": null, "unlimited": true, "remaining": null, "resets_at": null}`,
		`{"feature": "sso", ` + allowed + `, "used": 0, "limit": null, "unlimited": true, "remaining": null, "resets_at": null}`,
		`{"feature": "audit", ` + refused + `, "error": "PolicyViolation", "message": "plan pro does not include feature audit",
			"used": 0, "limit": 0, "unlimited": false, "remaining": 0, "resets_at": null}`,
		`{"feature": "storage_bytes", ` + allowed + `, "used": 10485760, "limit": 10485760, "unlimited": false, "remaining": 0, "resets_at": null}`,
		`{"feature": "storage_bytes", "allowed": false, "code": 9007, "error": "PlanStorageLimitReached",
			"message": "1 of storage_bytes asked for; 10485760 of the 10485760 that plan pro allows are used",
			"used": 10485760, "limit": 10485760, "unlimited": false, "remaining": 0, "resets_at": null}`,
		`{"execution": true, "allowed": false, "code": 9006, "error": "PlanPayloadSizeExceeded", "message": "The payload of 51 MB is larger than the 50 MB that plan pro allows.",
			"exhausted": ["max_execution_payload_size_mb"], "used": 51, "limit": 50, "unlimited": false, "remaining": 0, "resets_at": null}`,
		`{"feature": "robots", ` + refused + `, "error": "PolicyViolation", "message": "no plan of the catalog has feature robots",
			"used": 0, "limit": 0, "unlimited": false, "remaining": 0, "resets_at": null}`,
		automation,
	}, ",")+`]`, got)
	after := l.view("ws")
	if before.Usage.Executions != after.Usage.Executions || before.Features["automations"].Used != after.Features["automations"].Used {
		t.Errorf("the check consumed: %+v, then %+v", before.Usage, after.Usage)
	}
}

func TestACheckTellsOfALockedResourceAndAUsedUpQuota(t *testing.T) {
	t.Parallel()
	l := newLibrary(t)
	l.assign("ws", "pro")
	for i := range 4 {
		l.consume("ws", "automations", 1, fmt.Sprintf("robot-%d", i))
	}
	l.start("ws", "a", "b", "c", "d", "e")
	l.assign("ws", "free")
	none := int64(0)
	got, err := l.Check(t.Context(), "ws", []api.Probe{{Feature: "automations", Quantity: &none, ResourceID: "robot-3"}, {Execution: true}})
	if err != nil {
		t.Fatal(err)
	}
	if a := got[0]; a.Allowed || a.Error != "ResourceLocked" || a.Used != 4 || *a.Limit != 2 {
		t.Errorf("of the locked resource: %+v", a)
	}
	if a := got[1]; a.Allowed || a.Code != enforcement.CodeExecutionQuota || len(a.Exhausted) != 2 || a.ResetsAt == nil || a.RetryAfterMS == nil {
		t.Errorf("of the execution: %+v", a)
	}
}

func TestAWrongProbeIsRefusedWithItsPlace(t *testing.T) {
	t.Parallel()
	r := api.NewReader(api.ReaderOptions{})
	less := int64(-1)
	one := int64(1)
	for name, c := range map[string]struct {
		probe api.Probe
		field string
	}{
		"nothing":                    {api.Probe{}, "checks[1].feature"},
		"both":                       {api.Probe{Feature: "seats", Execution: true}, "checks[1].feature"},
		"no name":                    {api.Probe{Feature: "a.b"}, "checks[1].feature"},
		"a negative quantity":        {api.Probe{Feature: "seats", Quantity: &less}, "checks[1].quantity"},
		"no resource":                {api.Probe{Feature: "seats", ResourceID: "a b"}, "checks[1].resource_id"},
		"a payload of a feature":     {api.Probe{Feature: "seats", PayloadBytes: 1}, "checks[1].payload_bytes"},
		"a negative payload":         {api.Probe{Execution: true, PayloadBytes: -1}, "checks[1].payload_bytes"},
		"a quantity of executions":   {api.Probe{Execution: true, Quantity: &one}, "checks[1].execution"},
		"a resource of an execution": {api.Probe{Execution: true, ResourceID: "r"}, "checks[1].execution"},
		"more than a hundred":        {api.Probe{Feature: "seats"}, "checks"},
	} {
		probes := []api.Probe{{Feature: "seats"}, c.probe}
		if c.field == "checks" {
			probes = make([]api.Probe, api.MaxProbes+1)
		}
		_, err := r.Check(t.Context(), "ws", probes)
		var wrong *usage.InvalidArgument
		if !errors.As(err, &wrong) || wrong.Field != c.field {
			t.Errorf("%s: the error is %v, want one of %s", name, err, c.field)
		}
	}
	var wrong *usage.InvalidArgument
	if _, err := r.Check(t.Context(), "ws", nil); !errors.As(err, &wrong) || wrong.Field != "checks" {
		t.Errorf("of no probes the error is %v", err)
	}
}
