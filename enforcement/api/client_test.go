package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/problems"
	"github.com/headroomhq/headroom/enforcement/usage"
)

// TestAGeneratedClient talks with the client that oapi-codegen made of the document.
func TestAGeneratedClient(t *testing.T) {
	t.Parallel()
	a := willing()
	server := httptest.NewServer(newDoor(t, a))
	defer server.Close()
	client, err := NewClientWithResponses(server.URL, WithHTTPClient(server.Client()), WithRequestEditorFn(
		func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+adminToken)
			return nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	admit := func(execution string) *AdmitExecutionResponse {
		t.Helper()
		answer, err := client.AdmitExecutionWithResponse(t.Context(), "ws_1",
			&AdmitExecutionParams{IdempotencyKey: new("key-" + execution)}, Admit{ExecutionId: execution, PayloadBytes: new(int64(2048))})
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	if answer := admit("ex_1"); answer.JSON201 == nil || answer.JSON201.ExecutionId != "ex_1" || answer.JSON201.RequestEventId != "key-ex_1" {
		t.Errorf("admit: %s %s", answer.Status(), answer.Body)
	}
	denying(refused(enforcement.CodeExecutionQuota, 100, 100, "All are used."), 0)(a)
	p := admit("ex_2").ApplicationproblemJSON429
	if p == nil || p.Type != problems.Base+"plan-execution-limit-reached" || p.Code == nil || *p.Code != 9001 || *p.LimitValue != 100 {
		t.Errorf("denied: %+v", p)
	}
	balance, err := client.ConsumeFeatureWithResponse(t.Context(), "ws_1", "automations", nil, Change{Quantity: new(int64(2))})
	if err != nil || balance.JSON200 == nil || balance.JSON200.Used != 2 || *balance.JSON200.Remaining != 3 {
		t.Errorf("consume: %+v, error %v", balance, err)
	}
	refusing(&usage.ResourceLocked{Feature: "automations", ResourceID: "a_6", Used: 10, Limit: 3})(a)
	locked, err := client.ConsumeFeatureWithResponse(t.Context(), "ws_1", "automations", nil, Change{ResourceId: new("a_6")})
	if err != nil || locked.ApplicationproblemJSON423 == nil || locked.ApplicationproblemJSON423.UpgradeHint == nil {
		t.Errorf("locked: %+v, error %v", locked, err)
	}
	invalidated, err := client.InvalidateWorkspaceWithResponse(t.Context(), "ws_1", nil, Invalidate{})
	if err != nil || invalidated.JSON202 == nil || invalidated.JSON202.Revision != 7 {
		t.Errorf("invalidate: %+v, error %v", invalidated, err)
	}
}
