package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// ask asks the micro-service, and waits for an instance that answers.
func (i *installation) ask(endpoint, body string, into any) {
	i.t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	ctx, cancel := context.WithTimeout(i.t.Context(), patience)
	defer cancel()
	for {
		got, err := schematest.NATS(i.t).RequestWithContext(ctx, "headroom.api."+endpoint, []byte(body))
		if errors.Is(err, nats.ErrNoResponders) {
			select {
			case <-again.C:
				continue
			case <-ctx.Done():
			}
		}
		if err != nil {
			i.t.Fatalf("%s %s: %v", endpoint, body, err)
		}
		if err := json.Unmarshal(got.Data, into); err != nil {
			i.t.Fatalf("%s %s: %s: %v", endpoint, body, got.Data, err)
		}
		return
	}
}

// admit asks over HTTP, and leaves the answer to the stream.
func (s *serving) admit(workspace, execution string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, "http://"+s.addr+"/v1/workspaces/"+workspace+"/executions",
		strings.NewReader(fmt.Sprintf(`{"execution_id":%q}`, execution)))
	if err != nil {
		s.t.Error(err)
		return
	}
	r.Header.Set("Content-Type", "application/json")
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		s.t.Error(err)
		return
	}
	answer.Body.Close()
}

// folded is how the ledger has the executions of a workspace: their outcomes by id, "" for
// those that run.
func (i *installation) folded(workspace string) map[string]string {
	i.t.Helper()
	rows, err := schematest.Postgres(i.t).Query(i.t.Context(), `
		select array[execution_id, coalesce(outcome, '')] from executions where workspace_id = @workspace and decided`,
		pgx.NamedArgs{"workspace": workspace})
	if err != nil {
		i.t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[[2]string])
	if err != nil {
		i.t.Fatal(err)
	}
	found := map[string]string{}
	for _, each := range all {
		found[each[0]] = each[1]
	}
	return found
}

// answeredOnce has a request that was answered under an idempotency key so long ago.
func (i *installation) answeredOnce(ago time.Duration) {
	i.t.Helper()
	_, err := schematest.Postgres(i.t).Exec(i.t.Context(), `
		insert into usage_requests (scope, workspace_id, key, fingerprint, created_at)
		values ('engine', 'ws_mixed', 'old', '', now() - @ago::interval)`, pgx.NamedArgs{"ago": ago})
	if err != nil {
		i.t.Fatal(err)
	}
}

// keys is how many idempotency keys of consume and release are known.
func (i *installation) keys() (n int) {
	i.t.Helper()
	if err := schematest.Postgres(i.t).QueryRow(i.t.Context(), `select count(*) from usage_requests`).Scan(&n); err != nil {
		i.t.Fatal(err)
	}
	return n
}

// TestEventsAndDoorsShareOneLimit asks for more than there is room for by every way at
// once, at two processes, and ends by two ways what was let in.
func TestEventsAndDoorsShareOneLimit(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("plans", "apply", demoCatalog)
	i.answeredOnce(25 * time.Hour)
	first, second := i.serve(), i.serve()
	first.awaitStatus(http.StatusOK)
	second.awaitStatus(http.StatusOK)
	js := i.jetStream()
	const each = 20
	var wait sync.WaitGroup
	for n := range each {
		wait.Go(func() { i.request(js, "ws_mixed", fmt.Sprintf("event%d", n)) })
		wait.Go(func() {
			var d schemas.DecisionMade
			i.ask("admit", fmt.Sprintf(`{"workspace_id":"ws_mixed","execution_id":"nats%d"}`, n), &d)
		})
		wait.Go(func() {
			first.admit("ws_mixed", fmt.Sprintf("http%d", n))
		})
	}
	wait.Wait()
	allowed := map[string]string{}
	for _, way := range []string{"event", "nats", "http"} {
		for n := range each {
			execution := fmt.Sprint(way, n)
			if d := i.decision(js, "ws_mixed", execution); d.Admits() {
				allowed[execution] = ""
			}
		}
	}
	if len(allowed) != 2 {
		t.Errorf("%v are admitted, want 2 of the %d", allowed, 3*each)
	}
	i.eventually("the ledger has what was admitted", func() bool { return cmp.Equal(allowed, i.folded("ws_mixed")) })
	// One ends by NATS and one by HTTP.
	over := false
	for execution := range allowed {
		if !over {
			var done struct{ Released bool }
			i.ask("complete", fmt.Sprintf(`{"workspace_id":"ws_mixed","execution_id":%q,"outcome":"succeeded"}`, execution), &done)
			over = done.Released
			allowed[execution] = "succeeded"
			continue
		}
		status, body := second.call("POST", "/v1/workspaces/ws_mixed/executions/"+execution+"/complete", "", `{"outcome":"failed"}`)
		if released, _ := body["released"].(bool); status != http.StatusOK || !released || !over {
			t.Errorf("completed over HTTP: %d %v, over NATS: %t", status, body, over)
		}
		allowed[execution] = "failed"
	}
	i.eventually("the ledger has how they ended", func() bool { return cmp.Equal(allowed, i.folded("ws_mixed")) })
	var view struct {
		Usage struct{ Executions, Concurrent int64 }
	}
	i.ask("usage", `{"workspace_id":"ws_mixed"}`, &view)
	if view.Usage.Executions != 2 || view.Usage.Concurrent != 0 {
		t.Errorf("used: %+v, want 2 executions and none that runs", view.Usage)
	}
	var balance struct{ Used int64 }
	i.ask("consume", `{"workspace_id":"ws_mixed","feature":"automations","quantity":2}`, &balance)
	i.ask("release", `{"workspace_id":"ws_mixed","feature":"automations"}`, &balance)
	if balance.Used != 1 {
		t.Errorf("%d automations, want 1", balance.Used)
	}
	i.eventually("the old idempotency key is forgotten", func() bool { return i.keys() == 0 })
	if families := first.scrape(); sum(families["headroom_door_admissions_total"])+sum(second.scrape()["headroom_door_admissions_total"]) != 2*each ||
		sum(families["headroom_door_batches_total"]) == 0 {
		t.Error("the doors count nothing")
	}
	for _, s := range []*serving{first, second} {
		if err := s.end(); err != nil {
			t.Error(err)
		}
	}
}

// eventually asks again and again until it is so.
func (i *installation) eventually(what string, is func() bool) {
	i.t.Helper()
	schematest.Eventually(i.t, what, is)
}
