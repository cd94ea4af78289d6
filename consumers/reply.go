package consumers

import (
	"log/slog"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/schemas"
)

// headerReply names the inbox to which a requester wants its decision, besides
// the stream.
const headerReply = "Headroom-Reply"

const (
	inboxPrefix  = "_INBOX."
	longestInbox = 256
)

// replies sends decisions to their requesters' inboxes. It promises nothing: the
// stream is the record.
type replies struct {
	nats *nats.Conn
	log  *slog.Logger
}

// inbox is where the requester of a message wants its answer, empty for nowhere.
func (r *replies) inbox(m *message) string {
	wanted := schemas.HeaderValue(m.header, headerReply)
	if wanted == "" {
		return ""
	}
	if !isInbox(wanted) {
		r.log.Warn("reply address ignored, it is no inbox", "subject", m.subject, "sequence", m.sequence,
			"reply", headerText(wanted))
		return ""
	}
	return wanted
}

func (r *replies) send(inbox string, body []byte) {
	if inbox == "" {
		return
	}
	if err := r.nats.Publish(inbox, body); err != nil {
		r.log.Warn("reply not sent, the decision is in the stream", "reply", inbox, "error", err)
	}
}

// isInbox reports whether a subject lies under _INBOX and can be published to. A
// requester must not be able to make Headroom publish anywhere else.
func isInbox(subject string) bool {
	tokens, found := strings.CutPrefix(subject, inboxPrefix)
	if !found || len(subject) > longestInbox {
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
