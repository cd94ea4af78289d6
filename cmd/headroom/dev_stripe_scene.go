package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/enforcement/client"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

const (
	// sceneWorkspace is the one that pays in the demo.
	sceneWorkspace = "ws_paying"
	// sceneSource is the source of its events.
	sceneSource = "headroom-dev/stripe"
)

// playStripe begins to deliver Stripe's events and, where the engine ran, shows one
// subscription renew.
func (d *dev) playStripe(ctx context.Context, addr string) error {
	if err := d.stripe.deliverTo(ctx, d.config, addr); err != nil {
		return err
	}
	if !d.engine {
		return nil
	}
	nc, err := nats.Connect(d.config.NATSURL.Reveal(), append(natsIdentity(d.config), nats.Timeout(tryTimeout))...)
	if err != nil {
		return fmt.Errorf("connect to nats: %w", err)
	}
	defer nc.Close()
	headroom, err := client.New(nc, client.Options{Source: sceneSource, Topology: d.config.topology(), Log: d.log})
	if err != nil {
		return err
	}
	defer headroom.Close()
	s := scene{dev: d, headroom: headroom, store: subscriptions.NewStore(d.stripe.pool, d.config.storeOptions())}
	d.say("\nAnd a small Stripe runs here. Workspace %s subscribes, starts executions, and its period is renewed:\n", sceneWorkspace)
	for n, action := range []string{"subscribe", "renew"} {
		if err := s.act(ctx, action, 3*n); err != nil {
			return fmt.Errorf("play stripe: %w", err)
		}
	}
	return nil
}

// scene shows what Stripe's events do to decisions.
type scene struct {
	*dev
	headroom *client.Client
	store    *subscriptions.Store
}

// act does one action, waits until it is in force, and starts three executions.
func (s scene) act(ctx context.Context, action string, from int) error {
	begun := time.Now()
	done, err := s.stripe.act(ctx, action, sceneWorkspace)
	if err != nil {
		return err
	}
	workspace, err := s.store.Workspace(ctx, sceneWorkspace)
	if err != nil {
		return err
	}
	row := workspace.Subscription
	if row == nil {
		return fmt.Errorf("workspace %s has no subscription after %s", sceneWorkspace, action)
	}
	s.say("  stripe: %-10s %d events, the last %s", action, len(done.Events), slices.Concat([]string{"none"}, done.Events)[len(done.Events)])
	s.say("          %s until %s, %s, after %s", row.PlanKey, row.PeriodEnd.Format(time.DateOnly), row.PaymentState, time.Since(begun).Round(time.Millisecond))
	for n := range 3 {
		decision, err := s.admitted(ctx, row.ID, from+n)
		if err != nil {
			return err
		}
		s.say("          execution %d: allowed, %d of %s", from+n+1, decision.Used, decision.Limits.MaxExecutions)
	}
	return nil
}

// admitted asks for an execution. The news of the period may be a moment behind its row.
func (s scene) admitted(ctx context.Context, period string, n int) (schemas.DecisionMade, error) {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	deadline := time.After(devPatience)
	for try := 0; ; try++ {
		run, err := s.headroom.Admit(ctx, client.Execution{WorkspaceID: sceneWorkspace, ID: fmt.Sprintf("paying-%d-%d", n, try)})
		if err != nil {
			return schemas.DecisionMade{}, err
		}
		decision := run.Decision()
		if err := s.headroom.Complete(ctx, client.Completion{WorkspaceID: sceneWorkspace, ExecutionID: decision.ExecutionID, Outcome: schemas.OutcomeSucceeded}); err != nil {
			return decision, err
		}
		if decision.SubscriptionID != nil && *decision.SubscriptionID == period {
			return decision, nil
		}
		select {
		case <-look.C:
		case <-deadline:
			return decision, fmt.Errorf("period %s did not come into force", period)
		case <-ctx.Done():
			return decision, ctx.Err()
		}
	}
}
