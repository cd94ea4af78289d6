package guardtest

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/headroomhq/headroom/enforcement/guard"
)

// Settings are what a requirement needs of a lock; zero is the lock's own choice.
type Settings struct {
	// Connections is how many connections the lock and its transactions may use together.
	Connections int
	// LockTimeout is how long the lock is to wait.
	LockTimeout time.Duration
}

// Bench is a lock and a counter that it protects. Counters are told apart by name and
// begin at 0; there is one for each requirement.
type Bench[Tx any] struct {
	Lock guard.Lock[Tx]
	// Count reads a counter inside of the lock, and Add adds to it.
	Count func(ctx context.Context, tx Tx, counter string) (int64, error)
	Add   func(ctx context.Context, tx Tx, counter string, n int64) error
	// Stored reads a counter from outside: what everybody sees. It needs a connection.
	Stored func(ctx context.Context, counter string) (int64, error)
	// Fail does something in tx that fails and spoils it, and returns the error; nil where
	// a tx cannot be spoilt.
	Fail func(ctx context.Context, tx Tx) error
	// Address is what another process opens the same lock and counters with.
	Address string
}

// Harness is how the suite gets at a lock. Open is required.
type Harness[Tx any] struct {
	// Open makes a bench, with t.Cleanup for its end. All benches of a test may share
	// one store, because the suite uses other names each time.
	Open func(t testing.TB, s Settings) Bench[Tx]
	// Process is a command that serves another process: one that opens the bench of that
	// address, with 4 connections and a lock that waits 20 seconds, and calls Work with its
	// standard input and output, until the input ends. It must not end with t's context, which
	// is over before t's cleanups. Nil is for a lock whose domain is the process.
	Process func(t testing.TB, address string) *exec.Cmd
	// Transactional says that what act did is gone when the guard fails.
	Transactional bool
}

// Run proves the lock, with a subtest for each requirement. It takes a few seconds.
func Run[Tx any](t *testing.T, h Harness[Tx]) {
	t.Helper()
	for _, r := range requirements(h) {
		t.Run(r.name, func(t *testing.T) { r.prove(t, h) })
	}
}

// requirement is one thing that a lock must do.
type requirement[Tx any] struct {
	name  string
	prove func(t testing.TB, h Harness[Tx])
}

// requirements are those that apply.
func requirements[Tx any](h Harness[Tx]) []requirement[Tx] {
	all := []requirement[Tx]{
		{"5.1.1", pureCheck[Tx]},
		{"5.2.1", orderOfSteps[Tx]},
		{"5.2.2", linearizable[Tx]},
		{"5.2.3", keyHasNoSubject[Tx]},
		{"5.2.4", releasedHoweverItEnds[Tx]},
		{"5.3.1", oneTransaction[Tx]},
		{"5.3.2", defaultIsInProcess[Tx]},
		{"5.3.3", domainIsDeclared[Tx]},
		{"different keys run side by side", keysAreSeparate[Tx]},
		{"a GUID in two letter cases is one lock", caseOfAGUID[Tx]},
		{"a key that cannot be is refused", impossibleKeys[Tx]},
		{"the boundary", boundary[Tx]},
		{"the limit is read after the wait", limitAfterTheWait[Tx]},
		{"a wait that is cancelled", cancelledWait[Tx]},
		{"a wait that takes too long", tooLongWait[Tx]},
		{"a guard inside of a guard is refused", nested[Tx]},
		{"one connection is enough", oneConnection[Tx]},
	}
	if h.Process != nil {
		all = append(all, requirement[Tx]{"5.2.2 across two processes", acrossProcesses[Tx]})
	}
	if h.Transactional {
		all = append(all, requirement[Tx]{"5.3.1 nothing is stored of what failed", nothingStored[Tx]},
			requirement[Tx]{"a failure that act swallows is an error", swallowed[Tx]})
	}
	return all
}
