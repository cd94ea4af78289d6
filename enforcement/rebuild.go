package enforcement

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// comeAgain is when to ask again for a workspace that the ledger knows too little of.
const comeAgain = 50 * time.Millisecond

// How often, and how long, one waits here for another who is at a workspace.
const (
	busyTries = 50
	busyPause = 5 * time.Millisecond
)

// A rebuild's turn lasts as long as the fence, within which its caller has given up, and
// no shorter than this.
const shortestTurn = 500 * time.Millisecond

// rebuilding is one turn at rebuilding a workspace.
type rebuilding struct {
	group *group
	token string
	epoch string
	// wait is how long this workspace has to wait if it was ever decided about; in an
	// epoch as young as that, if anybody was.
	wait  time.Duration
	young bool
	// held: this Redis has on record that somebody was admitted, and lost the rest.
	held bool
	err  error
}

// rebuild opens workspaces in Redis from the ledger, after a first sight or a loss.
//
//	begin ─┬─► settle ─► read usage ─► load ─► asked again
//	       │      └─ behind, or decided about within the fence: abandon, Rebuilding
//	       ├─ another's turn: wait a little
//	       └─ within the fence: Rebuilding
//
// Whatever was decided on what is lost is published within the fence, or never. So what
// the ledger knows after the fence, once it has caught up, is all there will ever be. It
// returns the groups to ask again; the others fail.
func (e *Enforcer) rebuild(ctx context.Context, all []*group, results []Result) (again []*group) {
	for tries := 0; len(all) > 0; tries++ {
		turns, rebuilt, busy := e.begin(ctx, all, results)
		again = append(append(again, rebuilt...), e.load(ctx, turns, results)...)
		if len(busy) > 0 && (tries == busyTries || !rest(ctx, busyPause)) {
			for _, g := range busy {
				g.fail(results, &Rebuilding{Workspace: g.workspace, After: comeAgain})
			}
			break
		}
		all = busy
	}
	return again
}

// rest lets a pause pass; it is false if ctx ends before.
func rest(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// load reads what is to be known of the workspaces, and tells Redis. It returns the
// groups of those. Each is opened as soon as it is read: where ctx has no time for all,
// the next caller finds some of them done.
func (e *Enforcer) load(ctx context.Context, turns []*rebuilding, results []Result) []*group {
	if len(turns) == 0 {
		return nil
	}
	inParallel(len(turns), func(i int) { turns[i].err = e.loadOne(ctx, turns[i]) })
	var given []*call
	var loaded []*group
	for _, turn := range turns {
		if turn.err == nil {
			loaded = append(loaded, turn.group)
			continue
		}
		turn.group.fail(results, turn.err)
		given = append(given, &call{script: abandonScript, keys: e.keys(turn.group.workspace), args: []any{e.window, turn.token}})
	}
	e.abandon(ctx, given)
	return loaded
}

func (e *Enforcer) loadOne(ctx context.Context, turn *rebuilding) error {
	known, err := e.settle(ctx, turn)
	if err != nil {
		return err
	}
	c, err := e.rebuildCall(turn, known)
	if err != nil {
		return err
	}
	if e.run(ctx, []*call{c}); c.err != nil {
		return fmt.Errorf("rebuild workspace %s: %w", turn.group.workspace, c.err)
	}
	return nil
}

// abandon gives turns back, also those of a caller whose time is over: nobody else could
// take them for as long as they last.
func (e *Enforcer) abandon(ctx context.Context, given []*call) {
	if len(given) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.fence/4)
	defer cancel()
	e.run(ctx, given)
}

// The statuses of begin.
const (
	beginMayRebuild = iota
	beginLater
	beginRebuilt
)

// begin asks for a turn at each workspace. It returns those it has, the groups whose
// workspace was rebuilt meanwhile, and those whose workspace another is at.
func (e *Enforcer) begin(ctx context.Context, all []*group, results []Result) (turns []*rebuilding, rebuilt, busy []*group) {
	token := uuid.NewString()
	calls := make([]*call, len(all))
	for i, g := range all {
		calls[i] = &call{script: beginScript, keys: e.keys(g.workspace), args: []any{
			e.window, token, milliseconds(e.fence.Milliseconds()),
			milliseconds(max(e.fence, shortestTurn).Milliseconds()), e.epochKept(), flag(e.decided.Load()),
		}}
	}
	e.run(ctx, calls)
	for i, g := range all {
		c := calls[i]
		switch {
		case c.err != nil:
			g.fail(results, fmt.Errorf("rebuild workspace %s: %w", g.workspace, c.err))
		case integer(c.reply[0]) == beginMayRebuild && len(c.reply) > 5:
			turns = append(turns, &rebuilding{
				group: g, token: token, epoch: text(c.reply[2]), young: integer(c.reply[4]) == 1,
				held: integer(c.reply[5]) == 1, wait: time.Duration(integer(c.reply[3])) * time.Millisecond,
			})
		case integer(c.reply[0]) == beginLater && len(c.reply) > 3 && integer(c.reply[3]) == 1:
			busy = append(busy, g)
		case integer(c.reply[0]) == beginLater && len(c.reply) > 3:
			g.fail(results, &Rebuilding{Workspace: g.workspace, After: time.Duration(integer(c.reply[2])) * time.Millisecond})
		default:
			rebuilt = append(rebuilt, g)
		}
	}
	return turns, rebuilt, busy
}

// settle reads what the ledger knows, once it knows of all that was published. It does
// not wait for long: whoever comes again finds the ledger further on.
//
// What nobody has heard of yet is not in the ledger, so in a young epoch it does not
// matter whether this workspace is. Only where nothing was ever decided, as in a new
// installation, there is nothing to wait for.
func (e *Enforcer) settle(ctx context.Context, turn *rebuilding) (Usage, error) {
	g := turn.group
	settled, err := e.settled(ctx, g.workspace)
	if err != nil {
		return Usage{}, err
	}
	if settled.Anybody {
		e.decided.Store(true)
	}
	known, err := e.usage.Usage(ctx, g.workspace, g.terms.UsageEpoch)
	if err != nil {
		return Usage{}, unreadUsage(g.workspace, err)
	}
	decided := turn.held || settled.Workspace || known.Used > 0 || known.Peak > 0 || len(known.Leases)+len(known.Over) > 0
	if turn.wait > 0 && (decided || turn.young && settled.Anybody) {
		return Usage{}, &Rebuilding{Workspace: g.workspace, After: turn.wait}
	}
	return known, nil
}

func (e *Enforcer) settled(ctx context.Context, workspace string) (Settled, error) {
	if e.watermark == nil {
		return Settled{}, nil
	}
	patient, cancel := context.WithTimeout(ctx, e.fence/2)
	defer cancel()
	settled, err := e.watermark.Settled(patient, workspace)
	if errors.Is(err, context.DeadlineExceeded) {
		return settled, fmt.Errorf("%w: %w", &Rebuilding{Workspace: workspace, After: comeAgain}, err)
	}
	if err != nil {
		return settled, fmt.Errorf("wait for the ledger of workspace %s: %w: %w", workspace, ErrUnavailable, err)
	}
	return settled, nil
}

// flag is how a script takes a truth.
func flag(is bool) string {
	if is {
		return "1"
	}
	return "0"
}
