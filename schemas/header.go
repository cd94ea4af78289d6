package schemas

import (
	"strings"

	"github.com/nats-io/nats.go"
)

// HeaderValue is a header's first value. Names are compared without regard to case:
// common tracing libraries write Traceparent where others write traceparent.
func HeaderValue(header nats.Header, name string) string {
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

// TraceOf is the W3C trace headers among those of a request, under their usual
// names; one of more than 1,024 bytes is left out. It is never nil.
func TraceOf(header nats.Header) nats.Header {
	trace := make(nats.Header, len(traceHeaders)+1)
	for _, name := range traceHeaders {
		if value := HeaderValue(header, name); value != "" && len(value) <= longestTrace {
			trace.Set(name, value)
		}
	}
	return trace
}

// InboxPrefix begins the subjects to which answers are sent unless a client says otherwise.
const InboxPrefix = "_INBOX."

// longestReply bounds a subject that somebody else names, in bytes.
const longestReply = 256

// ValidReply reports whether an answer may be sent to a subject that its requester named:
// it lies under the prefix and can be published to. A requester must not be able to make
// Headroom publish anywhere else, as to the subjects by which streams are deleted.
func ValidReply(subject, prefix string) bool {
	tokens, found := strings.CutPrefix(subject, prefix)
	if !found || len(subject) > longestReply {
		return false
	}
	for token := range strings.SplitSeq(tokens, ".") {
		if token == "" {
			return false
		}
	}
	for _, b := range []byte(tokens) {
		if b <= ' ' || b >= 0x7f || b == '*' || b == '>' {
			return false
		}
	}
	return true
}
