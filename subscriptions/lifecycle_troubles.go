package subscriptions

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// firstPutOff doubles with each failure of a workspace, up to longestPutOff.
	firstPutOff   = time.Second
	longestPutOff = 5 * time.Minute
	// mostTroubles bounds what is remembered of workspaces that another process may
	// have caught up since.
	mostTroubles = 10_000
)

// trouble is a workspace that could not be caught up.
type trouble struct {
	text     string
	failures int
}

// troubles are those of one process. Each is logged when it is new, when it is
// another one, and when it is over.
type troubles struct {
	log *slog.Logger
	mu  sync.Mutex
	of  map[string]trouble
}

// add notes a failure and returns how long to leave the workspace alone.
func (t *troubles) add(ctx context.Context, workspace string, err error) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.of[workspace]
	again := longestPutOff
	if known.failures < 16 {
		again = min(firstPutOff<<known.failures, longestPutOff)
	}
	if text := err.Error(); text != known.text {
		known.text = text
		t.log.ErrorContext(ctx, "workspace cannot be caught up", "workspace_id", workspace, "error", err, "again_in", again)
	}
	if len(t.of) >= mostTroubles {
		clear(t.of)
	}
	known.failures++
	t.of[workspace] = known
	return again
}

// over forgets the trouble of a workspace that was caught up.
func (t *troubles) over(ctx context.Context, workspace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, troubled := t.of[workspace]; troubled {
		delete(t.of, workspace)
		t.log.InfoContext(ctx, "workspace is caught up again", "workspace_id", workspace)
	}
}
