package consumers

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

const (
	kindRenewed = schemas.ConsumerRenewed
	// roomSubscriptions is the room of dead letters from the subscriptions stream.
	roomSubscriptions = "subscriptions"
	// shortestLook bounds how early a renewal is given up that was already old when this
	// process first found its row missing: its publisher may have been away as well.
	shortestLook = time.Minute
	// renewTimeout bounds what one batch asks of a service.
	renewTimeout = 10 * time.Second
)

// Renewals knows the periods and tells of changes; subscriptions.Store is one.
type Renewals interface {
	// Periods reads the rows of the ids, by id.
	Periods(ctx context.Context, ids []string) (map[string]subscriptions.PeriodRow, error)
	// Invalidate finds anew which subscription counts, tells all caches, and returns the
	// workspace's new revision.
	Invalidate(ctx context.Context, workspace, reason string) (revision int64, err error)
}

// PlanCache is what a process knows of plans. subscriptions.Cache is one.
type PlanCache interface {
	// Invalidate makes whatever is cached below the revision unusable.
	Invalidate(workspace string, revision int64)
}

// opener opens periods before they are asked for; enforcement.Enforcer is one.
type opener interface {
	OpenPeriods(ctx context.Context, workspaces []string) []error
}

// renewed handles subscription.renewed, whoever published it. The row in Postgres is
// what counts, the event only says that there is one:
//
//	no row yet             put off; a dead letter once it is older than patience
//	of another workspace   dead letter
//	from somebody else     the workspace's revision rises and all caches are told
//	the row counts         its period is opened in Redis
//	it does not            nothing is opened: a later period is there, another
//	                       subscription counts, or it has ended
//
// It asks for nothing that hangs on the order of events: what is opened is the
// workspace's present period, and a renewal that was followed by another opens
// nothing. While a service is away a message is put off for as long as it takes.
type renewed struct {
	renewals Renewals
	plans    PlanCache
	enforcer opener
	memory   *memory
	breaker  *breaker
	patience time.Duration
	now      func() time.Time
	log      *slog.Logger
	probe    probe
}

// renewal is an event on its way through.
type renewal struct {
	index   int
	message *message
	id      string // of the subscription, as Postgres writes it
	event   schemas.Event[schemas.SubscriptionRenewed]
	row     subscriptions.PeriodRow
}

func (r *renewal) workspace() string { return r.event.Data.WorkspaceID }

// isForeign reports whether somebody else published the event. What Headroom publishes was
// told to the caches by the transaction that it comes from.
func (r *renewal) isForeign() bool { return r.event.Source != schemas.SourceHeadroom }

func (h *renewed) handle(ctx context.Context, batch []*message) []error {
	verdicts := make([]error, len(batch))
	all := make([]*renewal, 0, len(batch))
	for i, m := range batch {
		event, err := schemas.Decode[schemas.SubscriptionRenewed](m.subject, m.body)
		if err != nil {
			verdicts[i] = refusedBody(err)
			continue
		}
		all = append(all, &renewal{index: i, message: m, id: strings.ToLower(event.Data.SubscriptionID), event: event})
	}
	if h.breaker.wait(h.now()) > 0 {
		h.putOff(all, errPaused, verdicts)
		return verdicts
	}
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	all = h.known(ctx, all, verdicts)
	all = h.tell(ctx, all, verdicts)
	h.open(ctx, all, verdicts)
	return verdicts
}

// known keeps the renewals whose rows are there, with their rows.
func (h *renewed) known(ctx context.Context, all []*renewal, verdicts []error) []*renewal {
	rows, err := h.read(ctx, all)
	if err != nil {
		h.breaker.failed(h.now())
		h.putOff(all, err, verdicts)
		return nil
	}
	var known []*renewal
	for _, r := range all {
		row, found := rows[r.id]
		switch {
		case !found:
			verdicts[r.index] = h.missing(r)
			continue
		case row.WorkspaceID != r.workspace():
			verdicts[r.index] = &Dead{Reason: fmt.Sprintf("subscription %s does not belong to workspace %s", row.ID, r.workspace())}
			continue
		case !row.PeriodStart.Equal(r.event.Data.PeriodStart):
			h.log.WarnContext(ctx, "renewal names another period than its row, which counts", "workspace", r.workspace(),
				"subscription", row.ID, "source", r.event.Source, "period_start", row.PeriodStart, "named", r.event.Data.PeriodStart)
		}
		r.row = row
		known = append(known, r)
	}
	return known
}

func (h *renewed) read(ctx context.Context, all []*renewal) (map[string]subscriptions.PeriodRow, error) {
	if len(all) == 0 {
		return nil, nil
	}
	ids := make([]string, len(all))
	for i, r := range all {
		ids[i] = r.id
	}
	return h.renewals.Periods(ctx, ids)
}

// missing is the verdict on a renewal without a row: whoever published it may not have
// committed yet.
func (h *renewed) missing(r *renewal) error {
	now := h.now()
	age, looked := now.Sub(r.message.stored), now.Sub(h.memory.failing(r.message.sequence, now))
	if age >= h.patience && looked >= min(h.patience, shortestLook) {
		return &Dead{Reason: fmt.Sprintf("subscription %s does not exist %s after the event was stored", r.id, age.Round(time.Second))}
	}
	return &Defer{Reason: "subscription " + r.id + " does not exist yet"}
}

// tell has all caches told of what somebody else wrote, and finds out which rows
// count then. A message that comes again is told of once by each process that it
// comes to: more would be a storm while Redis is away, and the caches lose
// nothing by it.
func (h *renewed) tell(ctx context.Context, all []*renewal, verdicts []error) []*renewal {
	var told, kept []*renewal
	for _, r := range all {
		if !r.isForeign() {
			kept = append(kept, r)
			continue
		}
		if h.memory.isTold(r.message.sequence) {
			told = append(told, r)
			continue
		}
		_, err := h.renewals.Invalidate(ctx, r.workspace(), fmt.Sprintf("renewed by %s: %s", r.event.Source, r.event.Data.Kind))
		if err != nil {
			h.breaker.failed(h.now())
			h.putOff([]*renewal{r}, err, verdicts)
			continue
		}
		h.memory.tell(r.message.sequence, h.now())
		told = append(told, r)
	}
	if len(told) == 0 {
		return kept
	}
	h.probe.at(kindRenewed, "told")
	return append(kept, h.known(ctx, told, verdicts)...)
}

// open refreshes what this process knows, and opens the periods that count.
func (h *renewed) open(ctx context.Context, all []*renewal, verdicts []error) {
	asking := make(map[string][]*renewal)
	var workspaces []string
	for _, r := range all {
		h.plans.Invalidate(r.workspace(), r.row.Revision)
		if !r.row.Counts || r.event.Data.Kind == subscriptions.KindEnded {
			h.log.DebugContext(ctx, "renewal opens no period", "workspace", r.workspace(), "subscription", r.row.ID, "kind", r.event.Data.Kind)
			continue
		}
		if asking[r.workspace()] == nil {
			workspaces = append(workspaces, r.workspace())
		}
		asking[r.workspace()] = append(asking[r.workspace()], r)
	}
	if len(workspaces) == 0 {
		if len(all) > 0 {
			h.breaker.worked()
		}
		return
	}
	errs := h.enforcer.OpenPeriods(ctx, workspaces)
	h.probe.at(kindRenewed, "opened")
	tell(h.breaker, h.now(), errs, func(err error) (bool, bool) { return err != nil, err != nil })
	for i, ws := range workspaces {
		if errs[i] != nil {
			h.putOff(asking[ws], errs[i], verdicts)
			continue
		}
		h.log.DebugContext(ctx, "period opened", "workspace", ws, "subscription", asking[ws][0].row.ID)
	}
}

// putOff puts renewals off for as long as a service is away.
func (h *renewed) putOff(all []*renewal, err error, verdicts []error) {
	for _, r := range all {
		verdicts[r.index] = &Defer{Reason: "a service is away", Delay: heldDelay(h.breaker, r.message, h.now()), Err: err}
	}
}
