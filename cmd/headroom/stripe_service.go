package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/headroomhq/headroom/subscriptions"
	"github.com/headroomhq/headroom/webhooks"
)

// lateLookup is how long a look-up may wait before /readyz tells of it.
const lateLookup = time.Minute

// stripeParts are what follows Stripe.
type stripeParts struct {
	ledger *webhooks.Ledger
	worker *webhooks.Worker
	// api, sweep and sync are nil without a key.
	api   *webhooks.API
	sweep *webhooks.Sweep
	sync  *webhooks.Sync
}

// followsStripe reports whether there is anything to do about Stripe.
func (c Config) followsStripe() bool {
	return c.StripeWebhookSecrets.Reveal() != "" || c.StripeAPIKey.Reveal() != ""
}

// stripeAPI is nil without a key.
func (c Config) stripeAPI() (*webhooks.API, error) {
	if c.StripeAPIKey.Reveal() == "" {
		return nil, nil //nolint:nilnil // no key is no fault
	}
	return webhooks.NewAPI(webhooks.APIOptions{Key: c.StripeAPIKey.Reveal(), URL: c.StripeAPIURL})
}

// newStripeParts assembles them on a pool. The caller closes the API.
func newStripeParts(config Config, pool *pgxpool.Pool, log *slog.Logger) (*stripeParts, error) {
	ledger, err := webhooks.NewLedger(pool, webhooks.Mode(config.StripeMode))
	if err != nil {
		return nil, err
	}
	api, err := config.stripeAPI()
	if err != nil {
		return nil, err
	}
	options := config.storeOptions()
	options.Log = log
	store := subscriptions.NewStore(pool, options)
	p := &stripeParts{ledger: ledger, api: api}
	p.worker = webhooks.NewWorker(webhooks.WorkerOptions{Ledger: ledger, Store: store, API: api, Log: log})
	if api != nil {
		p.sweep = webhooks.NewSweep(webhooks.SweepOptions{Ledger: ledger, API: api, Log: log})
		p.sync = webhooks.NewSync(webhooks.SyncOptions{Ledger: ledger, Store: store, API: api, Log: log})
	}
	return p, nil
}

func (p *stripeParts) close() {
	if p.api != nil {
		p.api.Close()
	}
}

// followStripe receives, looks up and repairs until ctx ends: then nobody is let in any
// more, and the worker ends after the last delivery is stored. It has a pool of its own,
// so that a burst of deliveries keeps no decision from reading its plan.
func (s *service) followStripe(ctx context.Context) error {
	if !s.config.followsStripe() {
		return nil
	}
	pool, err := newPostgres(context.WithoutCancel(ctx), s.config)
	if err != nil {
		return err
	}
	defer pool.Close()
	parts, err := newStripeParts(s.config, pool, s.log)
	if err != nil {
		return err
	}
	defer parts.close()
	s.metrics.watchStripe(parts, s.door)
	s.health.stripe.use(parts.late)
	if err := s.openDoor(parts); err != nil {
		return err
	}
	working, rest := context.WithCancel(context.WithoutCancel(ctx))
	defer rest()
	running, ctx := errgroup.WithContext(ctx)
	running.Go(func() error { return parts.worker.Run(working) })
	running.Go(func() error {
		<-ctx.Done()
		s.door.close()
		rest()
		return nil
	})
	if parts.api != nil {
		running.Go(func() error { return parts.sweep.Run(ctx) })
		running.Go(func() error { return parts.sync.Run(ctx) })
	}
	return running.Wait()
}

func (s *service) openDoor(parts *stripeParts) error {
	if !s.door.configured {
		s.log.Warn("no events of stripe are received: they are only swept", "remedy", "set HEADROOM_STRIPE_WEBHOOK_SECRETS")
		return nil
	}
	if parts.api == nil {
		s.log.Warn("stripe is not asked for subscriptions: what was delivered is put together, and what was not stays unknown",
			"remedy", "set HEADROOM_STRIPE_API_KEY")
	}
	door, err := webhooks.NewDoor(webhooks.DoorOptions{
		Secrets: s.config.signingSecrets(), Ledger: parts.ledger, Log: s.log, Now: time.Now,
	})
	if err != nil {
		return err
	}
	s.door.open(door)
	return nil
}

// late is why look-ups are late, if they are.
func (p *stripeParts) late(ctx context.Context) error {
	lookups, oldest, err := p.ledger.Backlog(ctx, time.Now())
	switch {
	case err != nil:
		return err
	case oldest > lateLookup:
		return fmt.Errorf("%s of subscriptions wait, the oldest since %s", counted(int(lookups), "look-up"), oldest.Round(time.Second))
	default:
		return nil
	}
}
