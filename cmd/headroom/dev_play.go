package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/headroomhq/headroom/cmd/headroom/replay"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// replaySource begins the source of every event that the replay sends.
const replaySource = "headroom-dev"

// devPatience is how long an event of the replay may take beyond what an
// admission may be put off.
const devPatience = 20 * time.Second

// play replays the trace, and stays up when it was not told to end. addr is
// where HTTP is served.
func (d *dev) play(ctx context.Context, addr string) error {
	nc, js, err := dialNATS(d.config, tryTimeout)
	if err != nil {
		return err
	}
	defer nc.Close()
	door, err := replay.OpenDoor(ctx, replay.DoorOptions{
		JetStream: js, Topology: d.config.topology(), Overheard: d.overheard,
		Patience: d.config.UnavailableBudget + devPatience,
	})
	if err != nil {
		return err
	}
	defer door.Close()

	d.say("Playing %s: %s of %s, %s.\n", d.input.trace.Name, counted(len(d.input.trace.Executions), "execution"),
		counted(len(d.input.plans), "workspace"), d.input.speed)
	d.view.Begin(d.terms())
	played := replay.Play(ctx, d.input.trace, replay.Options{
		Headroom: door, Speed: d.input.speed, Source: replaySource, Decided: d.view.Decided,
	})
	if err := errors.Join(played, d.view.End()); err != nil {
		return err
	}
	if d.engine {
		if err := d.runEngine(ctx); err != nil {
			return err
		}
	}
	if err := d.playStripe(ctx, addr); err != nil {
		return err
	}
	if d.once {
		return nil
	}
	forget := d.found()
	defer forget()
	d.invite(addr)
	d.inviteHTTP(addr)
	<-ctx.Done()
	return ctx.Err()
}

// overheard shows a decision on an event by hand. The example engine and the scene of
// Stripe's tell of their own themselves.
func (d *dev) overheard(decision schemas.DecisionMade) {
	if decision.RequestEventSource != engineSource && decision.RequestEventSource != sceneSource {
		d.view.Overheard(decision)
	}
}

// subscribe makes the database, applies the catalog and opens a period for each
// workspace.
func (d *dev) subscribe(ctx context.Context) error {
	if err := schemas.Migrate(ctx, d.config.PostgresURL.Reveal(), d.log); err != nil {
		return err
	}
	pool, err := newPostgres(ctx, d.config)
	if err != nil {
		return err
	}
	defer pool.Close()
	store := subscriptions.NewStore(pool, subscriptions.StoreOptions{})
	if _, err := store.ApplyCatalog(ctx, d.input.catalog); err != nil {
		return fmt.Errorf("apply the catalog: %w", err)
	}
	for _, workspace := range d.input.trace.Workspaces() {
		assignment := subscriptions.Assignment{
			WorkspaceID: workspace, PlanKey: d.input.plans[workspace], Source: subscriptions.SourceSystem,
		}
		if _, err := store.Assign(ctx, assignment); err != nil {
			return fmt.Errorf("put workspace %s on plan %s: %w", workspace, d.input.plans[workspace], err)
		}
	}
	return nil
}

func (d *dev) terms() []replay.Plan {
	var plans []replay.Plan
	for _, plan := range d.input.catalog.Plans {
		plans = append(plans, replay.Plan{Key: plan.Key, Limits: plan.Limits})
	}
	return plans
}

// invite says how to reach what stays up.
func (d *dev) invite(addr string) {
	topology, workspace := d.config.topology(), d.input.trace.Workspaces()[0]
	event := schemas.NewEvent("by-hand", "hand-1", time.Now().UTC(), schemas.ExecutionRequested{
		WorkspaceID: workspace, ExecutionID: "hand-1",
	})
	body, err := schemas.Encode(event)
	if err != nil {
		body, _ = json.Marshal(event)
	}
	d.say(`
Headroom stays up until Ctrl-C. Ask for an execution by hand in another terminal, and watch its decision here:

  nats --server %[1]s pub %[2]s '%[3]s'

A second event needs another id and execution_id. The record of what was decided:

  nats --server %[1]s stream view %[4]s

The headroom commands find these services by their settings:

  export HEADROOM_NATS_URL=%[1]s
  export HEADROOM_REDIS_URL='%[5]s'
  export HEADROOM_POSTGRES_URL='%[6]s'
  %[9]s decisions %[7]s

The example engine, in the folder of the clone:

  NATS_URL=%[1]s go run ./examples/engine/run

A small Stripe runs here too, which bills nobody. Have it renew, upgrade or fail a payment, and see what becomes of the workspace:

  %[9]s dev stripe renew %[10]s

What it told Headroom, and that nothing is missing; both need the settings above too:

  export HEADROOM_STRIPE_MODE=%[11]s HEADROOM_STRIPE_API_KEY=%[12]s HEADROOM_STRIPE_API_URL=%[13]s
  %[9]s stripe events
  %[9]s stripe sync

Is it ready? http://%[8]s/readyz   What it counts: http://%[8]s/metrics
`, d.config.NATSURL.Reveal(), topology.Requested(workspace), body, topology.Stream(schemas.StreamDecisions),
		d.config.RedisURL.Reveal(), d.config.PostgresURL.Reveal(), workspace, addr, shellWord(os.Args[0]), sceneWorkspace,
		d.config.StripeMode, d.config.StripeAPIKey.Reveal(), d.config.StripeAPIURL)
}

// inviteHTTP says how to ask over HTTP.
func (d *dev) inviteHTTP(addr string) {
	needs, header := "no token here", ""
	if !d.config.isOpen() {
		needs, header = "a token of HEADROOM_API_TOKENS", `-H "Authorization: Bearer $TOKEN" `
	}
	d.say(`
The HTTP API asks for %[1]s; docs/api.md has every call:

  curl %[2]s-H 'Content-Type: application/json' -d '{"execution_id": "hand-2"}' %[3]s/executions
  curl %[2]s%[3]s`, needs, header, "http://"+addr+"/v1/workspaces/"+d.input.trace.Workspaces()[0])
}

// shellWord is the text as a shell reads one word.
func shellWord(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return !isWord(r) && !strings.ContainsRune("/.+,:@%=", r) }) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
