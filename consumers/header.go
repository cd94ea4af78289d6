package consumers

import (
	"strings"

	"github.com/nats-io/nats.go"
)

// headerSize is how many bytes a header takes on its way.
func headerSize(header nats.Header) int {
	size := 0
	for name, values := range header {
		for _, value := range values {
			size += len(name) + len(value) + len(": \r\n")
		}
	}
	return size
}

// headerText makes a text fit for a header: one line of printable characters,
// and not too long.
func headerText(s string) string {
	if len(s) > longestReason {
		s = s[:longestReason]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			return ' '
		}
		return r
	}, s)
}
