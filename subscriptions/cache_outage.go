package subscriptions

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// probePause is the least time between two probes of a database that is away.
	probePause = 250 * time.Millisecond
	// probeTimeout bounds one, and mostProbes how many may hang at a time.
	probeTimeout = 500 * time.Millisecond
	mostProbes   = 4
	// probePatience is how long a caller with something to fall back on waits for
	// the probe that it began. A database that is back answers within it.
	probePatience = 100 * time.Millisecond
)

// outage is what a cache knows of a database that does not answer. The zero value
// is one that does.
//
// A load that fails because the database is away begins an outage, for all
// workspaces. Until a load is answered, whatever the answer, no load begins but a
// probe now and then; everybody else is served what there is or told at once.
type outage struct {
	mu sync.Mutex
	// fault is why the database is taken to be away, nil while it is not.
	fault  error
	next   time.Duration // when the next probe may begin
	probes int
}

// ask reports whether a load may begin now. While there is a fault, it is a probe and
// the caller owes a call of ended.
func (o *outage) ask(now time.Duration) (may bool, fault error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fault == nil {
		return true, nil
	}
	if now < o.next || o.probes == mostProbes {
		return false, o.fault
	}
	o.next = now + probePause
	o.probes++
	return true, o.fault
}

// known is the fault of an outage that lasts.
func (o *outage) known() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.fault
}

// heard is told how each load went.
func (o *outage) heard(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !away(err) {
		o.fault, o.next = nil, 0
		return
	}
	o.fault = err
}

func (o *outage) ended() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.probes--
}

// away reports whether an error proves that the database could not be asked, or
// could not answer. What it did answer, a refusal or rows that make no sense, does not.
func away(err error) bool {
	if err == nil {
		return false
	}
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		// Connections, resources, an operator's intervention, and the system's errors.
		for _, class := range []string{"08", "53", "57", "58"} {
			if strings.HasPrefix(refused.Code, class) {
				return true
			}
		}
		return false
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || pgconn.SafeToRetry(err)
}
