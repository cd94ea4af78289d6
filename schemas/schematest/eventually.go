package schematest

import (
	"testing"
	"time"
)

const (
	// eventPatience is how long Eventually asks.
	eventPatience = 30 * time.Second
	glance        = 2 * time.Millisecond
)

// Eventually asks again and again until it is so, and ends the test after 30 seconds
// without. It is for what nobody tells of: what tells should be waited for.
func Eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	again := time.NewTicker(glance)
	defer again.Stop()
	deadline := time.After(eventPatience)
	for !is() {
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("not in time: %s", what)
		}
	}
}
