package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/cmd/headroom/devstack"
	"github.com/headroomhq/headroom/enforcement/client"
	"github.com/headroomhq/headroom/examples/projects"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// headroom is what the application needs of one.
type headroom struct {
	// pool is for the application, reading for what Headroom reads itself.
	pool, reading *pgxpool.Pool
	store         *subscriptions.Store
	plans         projects.Plans
	// follow keeps the plans current until the context ends.
	follow func(ctx context.Context) error

	private *devstack.Postgres
	nc      *nats.Conn
}

// open uses the Headroom whose NATS and PostgreSQL those are, or starts what is needed of
// one. Close it, after an error too.
func open(ctx context.Context, natsURL, postgresURL string, log *slog.Logger) (*headroom, error) {
	h := &headroom{follow: func(context.Context) error { return nil }}
	var err error
	switch {
	case natsURL == "" && postgresURL == "":
		err = h.alone(ctx, log)
	case natsURL == "" || postgresURL == "":
		err = errors.New("NATS_URL and POSTGRES_URL go together: both of a running Headroom, or neither")
	default:
		err = h.beside(ctx, natsURL, postgresURL, log)
	}
	return h, err
}

// alone has a database of its own. The plans change in this process only, which tells the
// cache itself.
func (h *headroom) alone(ctx context.Context, log *slog.Logger) (err error) {
	if h.private, err = devstack.StartPostgres(ctx, devstack.PostgresOptions{}); err != nil {
		return err
	}
	if err := schemas.Migrate(ctx, h.private.URL(), slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	if err := h.connect(ctx, h.private.URL(), log); err != nil {
		return err
	}
	catalog, err := projects.Catalog()
	if err != nil {
		return err
	}
	if _, err := h.store.ApplyCatalog(ctx, catalog); err != nil {
		return err
	}
	h.plans = subscriptions.NewCache(h.store.PlanInfo, subscriptions.CacheOptions{})
	return nil
}

// beside is told of every change, whoever made it: Stripe, an operator, this application.
func (h *headroom) beside(ctx context.Context, natsURL, postgresURL string, log *slog.Logger) error {
	if err := h.connect(ctx, postgresURL, log); err != nil {
		return err
	}
	known, err := h.store.Features(ctx)
	if err != nil {
		return err
	}
	for _, feature := range []string{"projects", "seats"} {
		if _, found := known[feature]; !found {
			return fmt.Errorf("no plan has feature %s: add it to the catalog, or apply examples/projects/catalog.yaml", feature)
		}
	}
	if h.nc, err = nats.Connect(natsURL, nats.Name("example-projects"), nats.MaxReconnects(-1)); err != nil {
		return fmt.Errorf("connect to NATS_URL: %w", err)
	}
	js, err := jetstream.New(h.nc)
	if err != nil {
		return err
	}
	plans, err := client.NewPlans(client.PlansOptions{Source: h.store, JetStream: js, Log: log})
	if err != nil {
		return err
	}
	h.plans, h.follow = plans, plans.Run
	return nil
}

func (h *headroom) connect(ctx context.Context, url string, log *slog.Logger) (err error) {
	if h.pool, err = pgxpool.New(ctx, url); err != nil {
		return errors.New("connect to PostgreSQL: its address cannot be used") // it may hold a password
	}
	if h.reading, err = pgxpool.New(ctx, url); err != nil {
		return errors.New("connect to PostgreSQL: its address cannot be used")
	}
	h.store = subscriptions.NewStore(h.reading, subscriptions.StoreOptions{Log: log})
	return nil
}

// close ends what was opened, in the reverse order.
func (h *headroom) close(ctx context.Context) error {
	if h.nc != nil {
		h.nc.Close()
	}
	for _, pool := range []*pgxpool.Pool{h.pool, h.reading} {
		if pool != nil {
			pool.Close()
		}
	}
	if h.private == nil {
		return nil
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return h.private.Stop(ending)
}
