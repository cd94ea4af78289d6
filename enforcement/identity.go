package enforcement

import (
	"crypto/sha256"

	"github.com/google/uuid"

	"github.com/headroomhq/headroom/schemas"
)

// identity names one question: the same event asked about the same execution.
// Its first half is what Redis remembers the request by; as a whole it is the id
// of the decision, so that a repeated decision carries the same id.
type identity [16]byte

func identify(kind schemas.DecisionKind, workspace, execution, source, event string) identity {
	// Ids hold no NUL byte; a source and an event id could, so their length leads.
	buf := make([]byte, 0, 256)
	for _, part := range []string{string(kind), workspace, execution, milliseconds(int64(len(source))), source, event} {
		buf = append(append(buf, part...), 0)
	}
	sum := sha256.Sum256(buf)
	return identity(sum[:16])
}

// request is what the scripts remember the question by.
func (id identity) request() string { return string(id[:8]) }

// decisionID is a UUID of version 8 (RFC 9562: bits by the maker's own rule).
func (id identity) decisionID() string {
	u := uuid.UUID(id)
	u[6] = u[6]&0x0f | 0x80
	u[8] = u[8]&0x3f | 0x80
	return u.String()
}
