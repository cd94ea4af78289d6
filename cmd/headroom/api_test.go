package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/headroomhq/headroom/schemas"
)

// call asks the API of a running process, and returns the status and the body.
func (s *serving) call(method, path, token, body string) (int, map[string]any) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.addr+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", strings.ReplaceAll(path, "/", "-"))
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	var value map[string]any
	if len(text) > 0 && text[0] == '{' {
		if err := json.Unmarshal(text, &value); err != nil {
			s.t.Fatal(err)
		}
	}
	return answer.StatusCode, value
}

// TestTheAPIAnswers asks a whole Headroom, over every service.
func TestTheAPIAnswers(t *testing.T) {
	t.Parallel()
	const engine, admin = "engine-0123456789", "admin-0123456789"
	i := newInstallation(t).with(map[string]string{"HEADROOM_API_TOKENS": "engine:" + engine + ",admin:" + admin + ":admin"})
	i.must("plans", "apply", demoCatalog)
	s := i.serve()
	s.awaitStatus(http.StatusOK)
	const ws = "/v1/workspaces/ws_api"
	if status, body := s.call("POST", ws+"/executions", "", `{"execution_id": "e1"}`); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d %v", status, body)
	}
	for range 2 { // the same event both times
		status, body := s.call("POST", ws+"/executions", engine, `{"execution_id": "e1"}`)
		if status != http.StatusCreated || body["used"] != 1.0 || body["request_event_source"] != "/api/engine" {
			t.Errorf("admit: %d %v", status, body)
		}
	}
	if status, body := s.call("POST", ws+"/executions", engine, `{"execution_id": "e2"}`); status != http.StatusUnprocessableEntity {
		t.Errorf("the key of another request: %d %v", status, body)
	}
	if status, body := s.call("PATCH", ws+"/executions/e1", engine, `{"tasks": 1}`); status != http.StatusOK || body["lease_expires_at"] == nil {
		t.Errorf("progress: %d %v", status, body)
	}
	if status, body := s.call("PATCH", ws+"/executions/e9", engine, `{"tasks": 1}`); status != http.StatusNotFound {
		t.Errorf("progress of none: %d %v", status, body)
	}
	for _, execution := range []string{"e1", "unknown"} {
		status, body := s.call("POST", ws+"/executions/"+execution+"/complete", engine, `{"outcome": "succeeded"}`)
		if status != http.StatusOK || body["released"] != (execution == "e1") {
			t.Errorf("complete %s: %d %v", execution, status, body)
		}
	}
	if status, body := s.call("POST", ws+"/features/automations/consume", engine, `{"resource_id": "a_1"}`); status != http.StatusOK || body["used"] != 1.0 {
		t.Errorf("consume: %d %v", status, body)
	}
	if status, body := s.call("POST", ws+"/features/automations/consume", engine, `{"quantity": 100000}`); status != http.StatusUnprocessableEntity {
		t.Errorf("the key of another consume: %d %v", status, body)
	}
	if status, body := s.call("GET", ws+"/features/automations/resources", engine, ""); status != http.StatusOK || body["used"] != 1.0 {
		t.Errorf("resources: %d %v", status, body)
	}
	if status, body := s.call("PUT", ws+"/features/automations/resources/keep", engine, `{"resource_ids": ["a_1"]}`); status != http.StatusForbidden {
		t.Errorf("keep without the scope: %d %v", status, body)
	}
	if status, body := s.call("PUT", ws+"/features/automations/resources/keep", admin, `{"resource_ids": ["a_1"]}`); status != http.StatusNoContent {
		t.Errorf("keep: %d %v", status, body)
	}
	if status, body := s.call("GET", ws, engine, ""); status != http.StatusOK || body["plan_key"] != "free" {
		t.Errorf("workspace: %d %v", status, body)
	}
	if status, body := s.call("POST", ws+"/check", engine, `{"checks": [{"execution": true}, {"feature": "automations"}]}`); status != http.StatusOK || body["checks"] == nil {
		t.Errorf("check: %d %v", status, body)
	}
	if status, body := s.call("POST", ws+"/invalidate", admin, `{}`); status != http.StatusAccepted || body["workspace_id"] != "ws_api" {
		t.Errorf("invalidate: %d %v", status, body)
	}
	for _, list := range []string{"/executions", "/subscriptions", "/decisions?execution=e1"} {
		if status, _ := s.call("GET", ws+list, engine, ""); status != http.StatusOK {
			t.Errorf("%s: %d", list, status)
		}
	}
	if status, body := s.call("GET", "/openapi.json", "", ""); status != http.StatusOK || body["openapi"] != "3.1.0" {
		t.Errorf("document: %d", status)
	}
	if d := i.decision(i.jetStream(), "ws_api", "e1"); !d.Allowed || d.Kind != schemas.KindAdmission {
		t.Errorf("on the stream: %+v", d)
	}
	if err := s.end(); err != nil {
		t.Error(err)
	}
}
