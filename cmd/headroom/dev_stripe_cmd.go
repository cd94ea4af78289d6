package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"
)

// devStripeCmd has the fake Stripe of a running dev do something.
type devStripeCmd struct {
	Action    string `arg:"" name:"ACTION" enum:"subscribe,trial,renew,upgrade,downgrade,fail-payment,recover-payment,cancel,cancel-at-end,trial-end" help:"subscribe, trial, renew, upgrade, downgrade, fail-payment, recover-payment, cancel, cancel-at-end or trial-end."`
	Workspace string `arg:"" name:"WS" help:"The workspace."`
	At        string `placeholder:"URL" help:"Where the fake Stripe is; the dev that this user started last unless given."`
}

// Help says what the actions do.
func (devStripeCmd) Help() string {
	return "subscribe buys the cheapest plan that has a price, trial begins with 14 days for nothing, renew goes to the next period, upgrade and downgrade go one plan up or down, " +
		"fail-payment renews and declines, and once more lets Stripe try until it gives up and ends the subscription, recover-payment pays what is open, cancel ends at once, cancel-at-end with the period, and trial-end ends the trial now.\n\n" +
		"Time passes for this workspace's subscription alone. Stripe's events are delivered, signed, to the running Headroom; what is printed then is the workspace as it is afterwards."
}

// Run acts, and shows the workspace.
func (c *devStripeCmd) Run(ctx context.Context, p *program) error {
	if err := checkID("workspace", c.Workspace); err != nil {
		return err
	}
	state, err := readState(stateFile(p.getenv))
	if err != nil && c.At == "" {
		return err
	}
	at := c.At
	if at == "" {
		at = state.Stripe
	}
	done, err := c.act(ctx, at)
	if err != nil {
		return err
	}
	for _, kind := range done.Events {
		fmt.Fprintln(p.stdout, "stripe tells", kind)
	}
	for _, answer := range done.Refused {
		p.note("not taken: %s", answer)
	}
	fmt.Fprintln(p.stdout)
	shown := *p
	if c.At == "" {
		shown.getenv = func(name string) string {
			if value, of := state.Settings[name]; of {
				return value
			}
			return devSettings(p.getenv)(name)
		}
	}
	return (&workspacesShowCmd{Workspace: c.Workspace}).Run(ctx, &shown)
}

func (c *devStripeCmd) act(ctx context.Context, at string) (devDone, error) {
	where, err := url.JoinPath(at, "dev", "stripe", c.Action, c.Workspace)
	if err != nil {
		return devDone{}, &usageError{Err: fmt.Errorf("--at %q: %w", c.At, err)}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, where, nil)
	if err != nil {
		return devDone{}, &usageError{Err: fmt.Errorf("--at %q: %w", c.At, err)}
	}
	client := &http.Client{Timeout: devPatience + 10*time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return devDone{}, fmt.Errorf("no `headroom dev` answers: start one in another terminal: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	return readDone(response)
}

// found writes where this dev is, and returns how to take that back.
func (d *dev) found() (forget func()) {
	s := devState{PID: os.Getpid(), Stripe: d.stripe.url(), Settings: map[string]string{
		"HEADROOM_NATS_URL": d.config.NATSURL.Reveal(), "HEADROOM_REDIS_URL": d.config.RedisURL.Reveal(),
		"HEADROOM_POSTGRES_URL": d.config.PostgresURL.Reveal(), "HEADROOM_HTTP_ADDR": "127.0.0.1:0",
	}}
	if d.state == "" {
		return func() {}
	}
	if err := s.write(d.state); err != nil {
		d.say("`headroom dev stripe` needs --at %s: %v", d.stripe.url(), err)
	}
	return func() { s.forget(d.state) }
}
