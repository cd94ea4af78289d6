package consumers

import (
	"log/slog"

	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/schemas"
)

// headerReply names the inbox to which a requester wants its decision, besides
// the stream.
const headerReply = "Headroom-Reply"

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
	if !schemas.ValidReply(wanted, schemas.InboxPrefix) {
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
