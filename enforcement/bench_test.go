package enforcement_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

const benchBatch = 250

// batchOf asks for one batch of executions, all of one workspace or each
// workspace for four.
func batchOf(workspaces, round int) []enforcement.Request {
	requests := make([]enforcement.Request, benchBatch)
	for i := range requests {
		n := round*benchBatch + i
		requests[i] = ask(uuid.Must(uuid.NewV7()).String(), "1")
		requests[i].WorkspaceID = "ws" + strconv.Itoa(n/4%workspaces)
	}
	return requests
}

func completions(requests []enforcement.Request) []enforcement.Completion {
	all := make([]enforcement.Completion, len(requests))
	for i, r := range requests {
		all[i] = enforcement.Completion{WorkspaceID: r.WorkspaceID, ExecutionID: r.ExecutionID, Outcome: schemas.OutcomeSucceeded}
	}
	return all
}

// BenchmarkAdmitAndRelease is one execution through both scripts, in batches of
// 250, four of a workspace at a time.
func BenchmarkAdmitAndRelease(b *testing.B) {
	for _, workspaces := range []int{1, 10, 1000} {
		b.Run(fmt.Sprintf("workspaces=%d", workspaces), func(b *testing.B) {
			h := newHouse(b, unlimited(func(l *schemas.Limits) { l.MaxExecutions = schemas.LimitOf(1 << 40) }))
			b.ReportAllocs()
			for round := 0; b.Loop(); round++ {
				requests := batchOf(workspaces, round)
				for _, got := range h.Admit(b.Context(), requests) {
					if got.Err != nil || !got.Decision.Allowed {
						b.Fatal(got.Err, got.Decision.Code)
					}
				}
				h.Release(b.Context(), completions(requests))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*benchBatch), "ns/execution")
			b.ReportMetric(float64(b.N*benchBatch)/b.Elapsed().Seconds(), "executions/s")
		})
	}
}

// BenchmarkMemory is what one admission costs in Redis at a million of them,
// while it runs and after it completed, spread over 1,000 workspaces.
func BenchmarkMemory(b *testing.B) {
	const executions, workspaces = 1_000_000, 1000
	server := schematest.RedisServer(b)
	options, err := redis.ParseURL(server.URL())
	if err != nil {
		b.Fatal(err)
	}
	client := redis.NewClient(options)
	b.Cleanup(func() { _ = client.Close() })
	h := houseOver(client, unlimited(nil))
	h.Admit(b.Context(), batchOf(workspaces, 0))
	for b.Loop() {
		before := usedMemory(b, client)
		var all []enforcement.Request
		for round := range executions / benchBatch {
			requests := batchOf(workspaces, round)
			all = append(all, requests...)
			for _, got := range h.Admit(b.Context(), requests) {
				if got.Err != nil {
					b.Fatal(got.Err)
				}
			}
		}
		running := usedMemory(b, client)
		for i := 0; i < len(all); i += benchBatch {
			h.Release(b.Context(), completions(all[i:i+benchBatch]))
		}
		over := usedMemory(b, client)
		b.ReportMetric(float64(running-before)/executions, "B/running")
		b.ReportMetric(float64(over-before)/executions, "B/remembered")
	}
}

func usedMemory(b *testing.B, client *redis.Client) int64 {
	b.Helper()
	for line := range strings.Lines(client.Info(b.Context(), "memory").Val()) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "used_memory:"); ok {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			return n
		}
	}
	b.Fatal("INFO memory tells no used_memory")
	return 0
}
