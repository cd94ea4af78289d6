package usage_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas/schematest"
)

func TestPostgresKilledInTheMiddleLosesNothingAndDoublesNothing(t *testing.T) {
	t.Parallel()
	server := schematest.PostgresServer(t)
	pool := schematest.Pool(t, server.URL(), 8)
	h := openOn(t, pool, schematest.Pool(t, server.URL(), 2), plan("free", features{"projects": -1}))
	const callers, calls = 8, 40
	var wait sync.WaitGroup
	var mu sync.Mutex
	counted, faults := 0, 0
	halfway := make(chan struct{})
	for i := range callers {
		wait.Go(func() {
			for n := range calls {
				if i == 0 && n == calls/2 {
					close(halfway)
				}
				once := usage.Once{Key: fmt.Sprintf("k-%d-%d", i, n)}
				until(t, "an answer", func() bool {
					_, err := h.ConsumeOnce(t.Context(), once, usage.Change{
						WorkspaceID: "w", Feature: "projects", Quantity: 1, ResourceID: once.Key,
					})
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						faults++
						return false
					}
					counted++
					return true
				})
			}
		})
	}
	<-halfway
	if err := server.Kill(); err != nil {
		t.Error(err)
	}
	until(t, "a caller to notice", func() bool { mu.Lock(); defer mu.Unlock(); return faults > 0 || counted == callers*calls })
	if err := server.Restart(t.Context()); err != nil {
		t.Error(err)
	}
	wait.Wait()
	if faults == 0 {
		t.Error("nobody noticed that the server was killed")
	}
	t.Logf("%d calls failed while the server was away", faults)
	h.wantUsed(t, "projects", callers*calls)
	if n := h.count(t, `select sum(quantity)::bigint from usage_resources`); n != callers*calls {
		t.Errorf("the resources have %d units, want %d", n, callers*calls)
	}
}
