package consumers

import (
	"strings"

	"github.com/nats-io/nats.go"
)

// first is a header's first value. Names are compared without regard to case:
// common tracing libraries write Traceparent where others write traceparent.
func first(header nats.Header, name string) string {
	if value := header.Get(name); value != "" {
		return value
	}
	for each, values := range header {
		if strings.EqualFold(each, name) && len(values) > 0 {
			return values[0]
		}
	}
	return ""
}

// longestTrace bounds a trace header that is passed on, in bytes. The W3C's
// recommendation asks for 512 at least; one that is longer could make a
// decision too large to be published.
const longestTrace = 1024

// traceHeaders travel from a request to its decision.
var traceHeaders = [...]string{"traceparent", "tracestate"}

// traceOf is the trace headers that a message's decision carries.
func traceOf(header nats.Header) nats.Header {
	trace := make(nats.Header, len(traceHeaders)+1)
	for _, name := range traceHeaders {
		if value := first(header, name); value != "" && len(value) <= longestTrace {
			trace.Set(name, value)
		}
	}
	return trace
}

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
