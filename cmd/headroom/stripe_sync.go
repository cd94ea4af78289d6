package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
	"github.com/headroomhq/headroom/webhooks"
)

// now is the clock of commands, in UTC.
func now() time.Time { return time.Now().UTC() }

// shownWaiting is how many subscriptions that wait are listed behind a comparison.
const shownWaiting = 20

// stripeSyncCmd compares all subscriptions once.
type stripeSyncCmd struct {
	Account []string `placeholder:"ACCT" help:"A connected account to compare too, besides those that were heard of. May be given again."`
	Rate    int      `default:"25" placeholder:"N" help:"How many subscriptions are looked up a second at most, each with two calls of the API; ${default} unless given."`
	output
}

// Help says what is compared, and that it may be interrupted.
func (stripeSyncCmd) Help() string {
	return "Lists every subscription that Stripe has, ended ones too, and looks up those that are not as the rows say. The first one imports who subscribed before Headroom was there: apply a catalog with the prices first. " +
		"It may be interrupted at any time; the next one goes on there. Those that it is not known whose they are, are listed at the end.\n\n" +
		"`headroom serve` compares once a day by itself."
}

// syncView is the report as -o json shows it.
type syncView struct {
	webhooks.SyncReport
	Waiting []webhooks.WaitingSubscription `json:"waiting"`
}

// Run compares, and looks up in this process too.
func (c *stripeSyncCmd) Run(ctx context.Context, p *program) error {
	if c.Rate < 1 {
		return &usageError{Err: fmt.Errorf("--rate %d: must be at least 1", c.Rate)}
	}
	return p.withStripe(ctx, true, func(a *admin, parts *stripeParts) error {
		report, err := c.sync(ctx, a, parts)
		if err != nil && (errors.Is(err, webhooks.ErrBusy) || report.Listed == 0) {
			return busy(err)
		}
		// What was done is told of an interrupted one, too.
		return errors.Join(c.print(context.WithoutCancel(ctx), a, parts, report), err)
	})
}

func (c *stripeSyncCmd) sync(ctx context.Context, a *admin, parts *stripeParts) (webhooks.SyncReport, error) {
	working, end := context.WithCancel(ctx)
	worked := make(chan error, 1)
	go func() { worked <- parts.worker.Run(working) }()
	line := newSyncLine(a.stderr)
	syncer := webhooks.NewSync(webhooks.SyncOptions{
		Ledger: parts.ledger, Store: subscriptions.NewStore(a.postgres, a.config.storeOptions()), API: parts.api,
		Rate: c.Rate, Progress: line.told, Log: a.log,
	})
	report, err := syncer.Once(ctx, c.Account...)
	end()
	line.end()
	return report, errors.Join(err, <-worked)
}

func (c *stripeSyncCmd) print(ctx context.Context, a *admin, parts *stripeParts, report webhooks.SyncReport) error {
	waiting, err := parts.ledger.Waiting(ctx, shownWaiting)
	if err != nil {
		return err
	}
	if c.json() {
		return writeIndented(a.stdout, syncView{report, list(waiting)})
	}
	pairs := [][2]string{
		{"subscriptions listed", number(int64(report.Listed))},
		{"as the rows say", number(int64(report.Compared))},
		{"looked up", number(int64(report.Asked))},
		{"imported", number(int64(report.Imported))},
		{"repaired", number(int64(report.Repairs()))},
	}
	for _, cause := range sortedKeys(report.Repaired) {
		pairs = append(pairs, [2]string{"  " + cause, number(int64(report.Repaired[cause]))})
	}
	if err := facts(a.stdout, pairs...); err != nil {
		return err
	}
	if report.Late > 0 {
		a.note("%s could not be finished yet; a running `headroom serve` goes on trying.", counted(report.Late, "look-up"))
	}
	if len(waiting) == 0 {
		return nil
	}
	a.note("\nThese wait for a person (`headroom stripe map`, or `plans apply` for prices that no plan has); all of them: `headroom stripe waiting --limit 100000`")
	return waitingTable(waiting).write(a.stdout, "")
}

// syncLine tells a person on a terminal how far a comparison is.
type syncLine struct {
	out    io.Writer
	begun  time.Time
	length int
}

func newSyncLine(out io.Writer) *syncLine {
	if !isTerminal(out) {
		return &syncLine{}
	}
	return &syncLine{out: out, begun: now()}
}

func (l *syncLine) told(is webhooks.SyncProgress) {
	if l.out == nil {
		return
	}
	text := fmt.Sprintf("%d subscriptions", is.Listed)
	if is.Expected > is.Listed {
		text = fmt.Sprintf("%d of about %d subscriptions", is.Listed, is.Expected)
	}
	text += fmt.Sprintf(", %d looked up (%.0f a second)", is.Asked-is.Waiting, float64(is.Asked-is.Waiting)/max(now().Sub(l.begun).Seconds(), 1))
	if is.LastError != "" {
		text += ", waiting: " + is.LastError
	}
	fmt.Fprintf(l.out, "\r%-*s", l.length, text)
	l.length = len(text)
}

func (l *syncLine) end() {
	if l.out != nil && l.length > 0 {
		fmt.Fprintln(l.out)
	}
}
