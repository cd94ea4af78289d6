package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas"
)

// workspacesReleaseCmd frees the slot of an execution by hand.
type workspacesReleaseCmd struct {
	Workspace string `arg:"" name:"WS" help:"The workspace."`
	Execution string `arg:"" name:"EXECUTION" help:"The execution; it must be known."`
	output
}

// Help says what is published, and what is not done.
func (workspacesReleaseCmd) Help() string {
	return "For an execution whose engine is gone and whose lease would hold its slot for long. It publishes execution.completed with the outcome canceled, " +
		"as the engine would have, and then frees the slot in Redis. The quota unit stays used. An execution that is over already stays as it is. " +
		"The engine, should it live after all, is not told to stop."
}

// releaseView is what came of it.
type releaseView struct {
	WorkspaceID string `json:"workspace_id"`
	ExecutionID string `json:"execution_id"`
	// Outcome is the one that stands.
	Outcome schemas.Outcome `json:"outcome"`
	// AlreadyOver: somebody else had ended it, and nothing was left to do.
	AlreadyOver bool `json:"already_over"`
	// Recorded: the completion is in the executions stream.
	Recorded bool `json:"recorded"`
	// Applied: Redis knows of it. Else it will as soon as it is back.
	Applied bool `json:"applied"`
	// Released: it held a slot, which is free now.
	Released bool `json:"released"`
	// LeaseExpiresAt is when the slot would have been freed by itself, null if it held none.
	LeaseExpiresAt *time.Time `json:"lease_expires_at"`
}

// Run frees the slot and prints what happened.
func (c *workspacesReleaseCmd) Run(ctx context.Context, p *program) error {
	if err := errors.Join(checkID("workspace", c.Workspace), checkID("execution", c.Execution)); err != nil {
		return err
	}
	return p.withAdmin(ctx, func(a *admin) error {
		client, err := newRedis(a.config)
		if err != nil {
			return err
		}
		defer func() { _ = client.Close() }()
		view, err := a.release(ctx, client, enforcement.Execution{WorkspaceID: c.Workspace, ExecutionID: c.Execution})
		if err != nil {
			return err
		}
		if c.json() {
			return writeIndented(p.stdout, view)
		}
		_, err = fmt.Fprintln(p.stdout, view)
		return err
	})
}

// release looks the execution up on both sides, and ends it unless it is over.
func (a *admin) release(ctx context.Context, client redis.UniversalClient, e enforcement.Execution) (releaseView, error) {
	enforcer := enforcement.New(enforcement.Options{Redis: client, Prefix: a.config.RedisPrefix})
	ending, err := ledger.New(a.postgres).Ending(ctx, e.WorkspaceID, e.ExecutionID)
	if err != nil {
		return releaseView{}, err
	}
	standing := enforcer.Standings(ctx, []enforcement.Execution{e})[0]
	if !ending.Known && !standing.Known {
		if standing.Err != nil {
			return releaseView{}, fmt.Errorf("the ledger does not know execution %s of workspace %s, and Redis cannot be asked; nothing was changed: %w",
				e.ExecutionID, e.WorkspaceID, standing.Err)
		}
		return releaseView{}, fmt.Errorf("execution %s of workspace %s is not known, neither to the ledger nor to Redis; nothing was changed",
			e.ExecutionID, e.WorkspaceID)
	}
	view := releaseView{WorkspaceID: e.WorkspaceID, ExecutionID: e.ExecutionID, Outcome: standing.Outcome}
	if ending.Outcome != "" {
		view.Outcome = ending.Outcome
	}
	if view.Outcome != "" && !standing.Live {
		view.AlreadyOver, view.Applied = true, standing.Err == nil
		return view, nil
	}
	if view.Outcome == "" {
		view.Outcome = schemas.OutcomeCanceled
	}
	if standing.Live {
		view.LeaseExpiresAt = &standing.LeaseExpiresAt
	}
	return a.complete(ctx, enforcer, view)
}

// complete ends it as the doors do: first the event, then the slot.
func (a *admin) complete(ctx context.Context, enforcer *enforcement.Enforcer, view releaseView) (releaseView, error) {
	nc, js, err := dialNATS(a.config, natsDialTimeout)
	if err != nil {
		return view, err
	}
	defer nc.Close()
	publisher, err := schemas.NewPublisher(js, schemas.PublisherOptions{})
	if err != nil {
		return view, err
	}
	defer publisher.Close()
	door := api.NewExecutions(api.ExecutionsOptions{Enforcer: enforcer, Events: publisher, Topology: a.config.topology(), Log: a.log})
	done, err := door.Complete(ctx, enforcement.Completion{
		WorkspaceID: view.WorkspaceID, ExecutionID: view.ExecutionID, Outcome: view.Outcome,
	}, nil, "")
	switch {
	case errors.Is(err, api.ErrRecorded):
		a.note("Redis could not be told: %v", err)
		view.Recorded = true
		return view, nil
	case err != nil:
		return view, err
	}
	view.Recorded, view.Applied, view.Released = true, true, done.Released && view.LeaseExpiresAt != nil
	if done.Prior != "" {
		view.Outcome = done.Prior
	}
	return view, nil
}

// String is the view as a person reads it.
func (v releaseView) String() string {
	name := fmt.Sprintf("execution %s of workspace %s", v.ExecutionID, v.WorkspaceID)
	switch {
	case v.AlreadyOver:
		return fmt.Sprintf("%s was over already (%s); nothing was changed", name, v.Outcome)
	case v.Released:
		return fmt.Sprintf("%s is over (%s): its slot, held until %s, is free", name, v.Outcome, instant(*v.LeaseExpiresAt))
	case v.Applied:
		return fmt.Sprintf("%s is over (%s); it held no slot any more", name, v.Outcome)
	default:
		return fmt.Sprintf("%s is recorded as over (%s); its slot is freed as soon as Redis can be told", name, v.Outcome)
	}
}
