//go:build !crashpoints

package consumers

import "github.com/nats-io/nats.go"

// crash marks the points at which a test kills the process. Without the build
// tag crashpoints it does nothing.
type crash struct{}

func newCrash(*nats.Conn) crash { return crash{} }

func (crash) at(_, _ string) {}

func (crash) sending(_ string, _ int, send func()) { send() }
