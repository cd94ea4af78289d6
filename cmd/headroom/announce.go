package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/schemas"
)

// eventSource is the source of the events that the commands publish.
const eventSource = "headroom-cli"

// announce tells everybody who caches plans that a workspace's has changed. The
// change is committed by then, so a failure is a note with what to do, no error.
func (a *admin) announce(ctx context.Context, change schemas.PlanInvalidated) {
	if err := a.publishInvalidated(ctx, change); err != nil {
		a.note("The change is saved, but running instances could not be told: %v\n"+
			"They use what they know for up to HEADROOM_PLAN_CACHE_TTL (%s here). To tell them, run this again when NATS answers.",
			err, a.config.PlanCacheTTL)
	}
}

func (a *admin) publishInvalidated(ctx context.Context, change schemas.PlanInvalidated) error {
	ctx, cancel := context.WithTimeout(ctx, 2*natsDialTimeout)
	defer cancel()
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("make an event id: %w", err)
	}
	body, err := schemas.Encode(schemas.NewEvent(eventSource, id.String(), time.Now(), change))
	if err != nil {
		return err
	}
	nc, js, err := dialNATS(a.config, natsDialTimeout)
	if err != nil {
		return err
	}
	defer nc.Close()
	subject := a.config.topology().Invalidated(change.WorkspaceID)
	if _, err := js.Publish(ctx, subject, body, jetstream.WithMsgID(id.String())); err != nil {
		return fmt.Errorf("publish to %s: %w", subject, err)
	}
	return nil
}
