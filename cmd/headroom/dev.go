package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/headroomhq/headroom/cmd/headroom/devstack"
	"github.com/headroomhq/headroom/cmd/headroom/replay"
	"github.com/headroomhq/headroom/webhooks"
)

// devStopDeadline bounds the end of the private services.
const devStopDeadline = 20 * time.Second

// devCommands is dev itself, and what is asked of one that runs.
type devCommands struct {
	Play   devCmd       `cmd:"" default:"withargs" help:"Run everything and play a trace; what dev does when nothing else is said."`
	Stripe devStripeCmd `cmd:"" help:"Have the fake Stripe of a running dev do something: renew, upgrade, fail a payment …"`
}

// devCmd runs everything on this machine and plays a trace against it.
type devCmd struct {
	Trace   string `placeholder:"FILE" help:"Executions to play, as comma separated values (see examples/README.md). Without it, a trace that comes with Headroom."`
	Catalog string `placeholder:"FILE" help:"Plans to put the trace's workspaces on. Without it, the catalog that comes with Headroom."`
	Speed   string `default:"auto" placeholder:"N|auto|max" help:"How many seconds of the trace pass in one second. auto plays it in about fifteen seconds, max without pauses."`
	Once    bool   `help:"End after the summary instead of staying up for events by hand."`
}

// Help says what there is to see.
func (devCmd) Help() string {
	return "Starts private NATS, Redis and PostgreSQL servers on free ports, decides in this process exactly as serve does, puts the " +
		"workspaces of the trace on the plans of the catalog in turn (lowest rank first), and plays the trace: a line for each decision, then " +
		"a summary. Without a trace or catalog of your own, the engine of examples/engine then runs a few workflows. It stays up for events sent by hand until Ctrl-C. Everything it made is removed when it ends.\n\n" +
		"No pause is longer than two seconds. Settings that name a service have no effect; the others have."
}

// Run plays the trace. It returns nil when it was asked to end, and with --once
// an error unless every request was decided.
func (c devCmd) Run(ctx context.Context, p *program) error {
	input, err := c.read(p)
	if err != nil {
		return err
	}
	config, log, err := (&program{getenv: devSettings(p.getenv), stdout: p.stdout, stderr: p.stderr}).settings()
	if err != nil {
		return err
	}
	if err := config.checkExposure(); err != nil {
		return err
	}
	if err := free(ctx, config.HTTPAddr); err != nil {
		return err
	}
	config.StripeMode = string(webhooks.ModeTest)
	d := &dev{once: c.Once, state: stateFile(p.getenv), engine: c.Trace == "" && c.Catalog == "", input: input, config: config, log: log, out: p.stdout}
	d.view = replay.NewView(p.stdout, input.trace, input.plans, coloured(p.stdout, p.getenv))
	err = d.run(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// dev is one run of the command.
type dev struct {
	once bool
	// engine is whether the example engine runs after the trace.
	engine bool
	input  devInput
	config Config
	log    *slog.Logger
	out    io.Writer
	view   *replay.View
	// stripe is a fake one, whom serve follows; state is where its address is written.
	stripe *devStripe
	state  string
}

// run starts the services, works with them, and stops them whatever happens.
func (d *dev) run(ctx context.Context) (err error) {
	begun := time.Now()
	d.say("Starting private PostgreSQL, Redis and NATS servers ...")
	stack, err := devstack.Start(ctx, devstack.Options{
		Postgres: true, Redis: true, NATS: true, RedisFallback: true, Log: d.log,
	})
	if err != nil {
		return fmt.Errorf("start the private services: %w", err)
	}
	defer func() {
		d.say("Stopping the private services ...")
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), devStopDeadline)
		defer cancel()
		err = errors.Join(err, stack.Stop(ending))
	}()
	d.say("Services answer after %s. Starting Headroom ...", time.Since(begun).Round(10*time.Millisecond))
	d.config.NATSURL = NewSecret(stack.NATSURL())
	d.config.RedisURL = NewSecret(stack.RedisURL())
	d.config.PostgresURL = NewSecret(stack.PostgresURL())
	return d.work(ctx)
}

// work is everything between the services' start and their end.
func (d *dev) work(ctx context.Context) error {
	stripe, err := newDevStripe(ctx, d.input.catalog)
	if err != nil {
		return err
	}
	defer stripe.close()
	d.stripe = stripe
	stripe.settle(&d.config)
	if err := d.subscribe(ctx); err != nil {
		return err
	}
	return d.serve(ctx)
}

// serve runs what the serve command runs beside the replay, and ends it when
// the replay has ended; an error of either ends the other.
func (d *dev) serve(ctx context.Context) error {
	serving, end := context.WithCancel(ctx)
	defer end()
	ready := make(chan string, 1)
	served := make(chan error, 1)
	go func() {
		defer end()
		served <- serve(serving, d.config, d.log, ready)
	}()
	var err error
	select {
	case addr := <-ready:
		err = d.play(serving, addr)
	case <-serving.Done():
	}
	end()
	// The replay's error is a consequence when serving failed.
	if failed := <-served; failed != nil {
		return failed
	}
	return err
}

// free finds out whether HTTP can be served at addr, before anything is started
// for it.
func free(ctx context.Context, addr string) error {
	listener, err := listen(ctx, addr)
	if err != nil {
		return err
	}
	return listener.Close()
}

// say tells the person what goes on. A line that cannot be written is no reason
// to end: the view, which writes to the same place, reports it.
func (d *dev) say(format string, args ...any) { _, _ = fmt.Fprintf(d.out, format+"\n", args...) }
