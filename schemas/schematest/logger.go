package schematest

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// Logger writes to the test's log, at info level and above. What is logged after the
// test's end is dropped, so a straggler cannot panic.
func Logger(t testing.TB) *slog.Logger {
	t.Helper()
	w := &testWriter{t: t}
	t.Cleanup(w.end)
	return slog.New(slog.NewTextHandler(w, nil))
}

// testWriter is a test's log until the test ends.
type testWriter struct {
	mu sync.Mutex
	t  testing.TB
}

func (w *testWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.t != nil {
		w.t.Log(strings.TrimRight(string(line), "\n"))
	}
	return len(line), nil
}

func (w *testWriter) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.t = nil
}
