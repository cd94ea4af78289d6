package projects

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/enforcement/guard"
	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// The features of catalog.yaml that the application counts.
const (
	featureProjects = "projects"
	featureSeats    = "seats"
	featureStorage  = schemas.FeatureStorage
)

//go:embed catalog.yaml
var catalog []byte

// Catalog is catalog.yaml, the plans that the application knows.
func Catalog() (subscriptions.Catalog, error) {
	return subscriptions.ParseCatalog("examples/projects/catalog.yaml", catalog)
}

// Plans tells what a workspace is on. subscriptions.Cache is one for a single process,
// and client.Plans one that is told of changes.
type Plans interface {
	Lookup(ctx context.Context, workspace string, at time.Time) (subscriptions.PlanInfo, error)
	Invalidate(workspace string, revision int64)
}

// Options are all required.
type Options struct {
	// Pool is for the application's transactions, on Headroom's database.
	Pool *pgxpool.Pool
	// Plans and Store read with a pool of their own: a transaction that had to wait for a
	// second connection of its pool could wait for itself.
	Plans Plans
	Store *subscriptions.Store
	Log   *slog.Logger
}

// App is the application.
type App struct {
	pool     *pgxpool.Pool
	plans    Plans
	store    *subscriptions.Store
	counters *usage.Counters
	guards   *guard.Client[pgx.Tx]
	log      *slog.Logger
}

//go:embed schema.sql
var schema string

// New makes the application's tables where there are none, and what it asks Headroom with.
func New(ctx context.Context, o Options) (*App, error) {
	if _, err := o.Pool.Exec(ctx, schema); err != nil {
		return nil, fmt.Errorf("make the application's tables: %w", err)
	}
	provider, err := guard.NewPlanProvider(guard.PlanOptions{Plans: o.Plans, Catalog: o.Store})
	if err != nil {
		return nil, err
	}
	guards, err := guard.New(guard.Options[pgx.Tx]{
		Provider: provider, Lock: guard.NewAdvisoryLock(o.Pool, guard.PostgresOptions{}),
	})
	if err != nil {
		return nil, err
	}
	counters := usage.New(usage.Options{Pool: o.Pool, Plans: o.Plans, Catalog: o.Store, Log: o.Log})
	return &App{pool: o.Pool, plans: o.Plans, store: o.Store, counters: counters, guards: guards, log: o.Log}, nil
}

// Handler serves the pages and takes the forms. Programs may send the same forms.
func (a *App) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/w/acme", http.StatusSeeOther)
	})
	mux.HandleFunc("GET /style.css", serveStyle)
	mux.HandleFunc("GET /w/{workspace}", a.show)
	for pattern, do := range map[string]action{
		"/projects":             a.createProject,
		"/projects/keep":        a.keepProjects,
		"/projects/{id}/rename": a.renameProject,
		"/projects/{id}/delete": a.deleteProject,
		"/projects/{id}/keep":   a.keepProject,
		"/invitations":          a.invite,
		"/invitations/accept":   a.accept,
		"/seats/remove":         a.removeSeat,
		"/files":                a.storeFile,
		"/files/{id}/delete":    a.deleteFile,
		"/plan":                 a.changePlan,
	} {
		mux.Handle("POST /w/{workspace}"+pattern, a.handle(do))
	}
	return bounded(http.NewCrossOriginProtection().Handler(mux))
}

// write runs do in a transaction: all that it does counts, or nothing. A commit that was
// sent is waited for, even if whoever asked has gone.
func (a *App) write(ctx context.Context, do func(tx pgx.Tx) error) error {
	tx, err := a.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	defer tx.Rollback(ending)
	if err := do(tx); err != nil {
		return err
	}
	if err := tx.Commit(ending); err != nil {
		return fmt.Errorf("%w: %w", errUnknown, err)
	}
	return nil
}

// changeOne runs a statement that must change one row; errNotFound if there is none.
func changeOne(ctx context.Context, tx pgx.Tx, statement string, args pgx.NamedArgs) error {
	tag, err := tx.Exec(ctx, statement, args)
	if err == nil && tag.RowsAffected() != 1 {
		return errNotFound
	}
	return err
}

// newID is a new identifier, in the order of time.
func newID() (string, error) {
	id, err := uuid.NewV7()
	return id.String(), err
}

// errUnknown means that a commit was sent and not answered.
var errUnknown = errors.New("whether it was stored is not known")

// errNotFound means that what a form names does not exist, or does not any more.
var errNotFound = errors.New("it does not exist, or not any more")
