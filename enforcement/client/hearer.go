package client

import (
	"log/slog"
	"strings"
	"time"

	"github.com/headroomhq/headroom/schemas"
)

// hearer tells a cache of one event after the other.
type hearer struct {
	plans   PlanCache
	applied func(after time.Duration)
	log     *slog.Logger
}

// hear tells of one event. Of one that can't be read it believes the subject and
// drops the workspace's plan: reading it again costs one query, keeping it could
// decide on terms that are gone.
func (h hearer) hear(subject string, body []byte) {
	event, err := schemas.Decode[schemas.PlanInvalidated](subject, body)
	if err != nil {
		workspace := subject[strings.LastIndexByte(subject, '.')+1:]
		h.plans.Invalidate(workspace, 0)
		h.log.Warn("invalidation is malformed, plan dropped from the cache", "subject", subject, "error", err)
		return
	}
	h.plans.Invalidate(event.Data.WorkspaceID, event.Data.PlanRevision)
	if h.applied != nil && !event.Time.IsZero() {
		h.applied(max(time.Since(event.Time), 0))
	}
	h.log.Debug("plan invalidated", "workspace", event.Data.WorkspaceID, "revision", event.Data.PlanRevision, "reason", event.Data.Reason)
}
