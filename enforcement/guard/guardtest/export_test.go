package guardtest

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// Findings runs the named requirements, and is what they find wrong with the lock.
func Findings[Tx any](t *testing.T, h Harness[Tx], names ...string) []string {
	t.Helper()
	var all []string
	for _, r := range requirements(h) {
		if !slices.Contains(names, r.name) {
			continue
		}
		rec, done := &recorder{TB: t}, make(chan struct{})
		go func() {
			defer close(done)
			r.prove(rec, h)
		}()
		<-done
		all = append(all, rec.faults...)
	}
	return all
}

// recorder is a test whose failures are kept and are none of the real test's.
type recorder struct {
	testing.TB
	mu     sync.Mutex
	faults []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

func (r *recorder) Error(args ...any) { r.Errorf("%s", fmt.Sprint(args...)) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) { r.Fatalf("%s", fmt.Sprint(args...)) }
