package projects

import (
	"context"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/schemas"
)

// view is all that the page shows.
type view struct {
	Workspace, Plan string
	Meters          []meter
	Projects        []project
	// Locked is how many projects are, Allowed how many may be unlocked.
	Locked, Allowed int
	// Next is the unlocked project that would be locked instead of another.
	Next  string
	Seats []seat
	Files []file
	Plans []planCard
	// Unlock is a plan in which nothing would be locked, nil if there is none.
	Unlock *offer
	// Problem is what was refused, nil when nothing was.
	Problem *problem
}

type project struct {
	ID, Name string
	Locked   bool `db:"-"`
}

type seat struct {
	Email   string
	Invited bool
}

type file struct {
	ID, Name  string
	SizeBytes int64
}

// Size is the file's size in words.
func (f file) Size() string { return number(featureStorage, f.SizeBytes) }

// meter is one limit and how much of it is used.
type meter struct {
	Name, Used, Limit string
	// Percent is 0 to 100, and State "ok", "near" (80 and above), "full" or "over".
	Percent int64
	State   string
	Note    string
}

func newMeter(name, feature string, used int64, limit schemas.Limit) meter {
	m := meter{Name: name, Used: number(feature, used), Limit: "unlimited", State: "ok"}
	n, bounded := limit.Value()
	if !bounded {
		return m
	}
	m.Limit = number(feature, n)
	if m.Percent = 100; used < n {
		m.Percent = used * 100 / n
	}
	switch {
	case used > n:
		m.State, m.Note = "over", number(feature, used-n)+" over"
	case used == n:
		m.State = "full"
	case m.Percent >= 80:
		m.State = "near"
	}
	return m
}

type planCard struct {
	Key, Projects, Seats, Storage string
	Current                       bool
}

// load reads what the page shows.
func (a *App) load(ctx context.Context, workspace string) (view, error) {
	info, err := a.plans.Lookup(ctx, workspace, time.Now())
	if err != nil {
		return view{}, err
	}
	v := view{Workspace: workspace, Plan: info.Snapshot.PlanKey}
	features, err := a.counters.Features(ctx, info)
	if err != nil {
		return view{}, err
	}
	seats, err := countSeats(ctx, a.pool, workspace)
	if err != nil {
		return view{}, err
	}
	v.Meters = []meter{
		newMeter("Projects", featureProjects, features[featureProjects].Used, features[featureProjects].Limit),
		newMeter("Seats", featureSeats, seats.Total, info.Snapshot.Features[featureSeats]),
		newMeter("Storage", featureStorage, features[featureStorage].Used, features[featureStorage].Limit),
	}
	if err := a.loadRows(ctx, &v); err != nil {
		return view{}, err
	}
	if err := a.loadLocks(ctx, &v); err != nil {
		return view{}, err
	}
	return v, a.loadPlans(ctx, &v)
}

func (a *App) loadRows(ctx context.Context, v *view) (err error) {
	args := pgx.NamedArgs{"workspace": v.Workspace}
	const projects = `SELECT id, name FROM projects_app.projects WHERE workspace_id = @workspace ORDER BY created_at, id`
	if v.Projects, err = read[project](ctx, a.pool, projects, args); err != nil {
		return err
	}
	const seats = `
		SELECT email, false AS invited, created_at FROM projects_app.members WHERE workspace_id = @workspace UNION ALL
		SELECT email, true, created_at FROM projects_app.invitations WHERE workspace_id = @workspace ORDER BY invited, created_at`
	if v.Seats, err = read[seat](ctx, a.pool, `SELECT email, invited FROM (`+seats+`) AS seats`, args); err != nil {
		return err
	}
	const files = `SELECT id, name, size_bytes FROM projects_app.files WHERE workspace_id = @workspace ORDER BY created_at, id`
	v.Files, err = read[file](ctx, a.pool, files, args)
	return err
}

func read[T any](ctx context.Context, q queryer, query string, args pgx.NamedArgs) ([]T, error) {
	rows, err := q.Query(ctx, query, args)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[T])
}

// loadLocks marks the projects that are locked.
func (a *App) loadLocks(ctx context.Context, v *view) error {
	state, err := a.locks(ctx, v.Workspace)
	if err != nil {
		return err
	}
	v.Locked, v.Allowed = len(state.locked), state.allowed
	next := ""
	if n := len(state.unlocked); n > 0 {
		next = state.unlocked[n-1]
	}
	for i, p := range v.Projects {
		v.Projects[i].Locked = state.locked[p.ID]
		if p.ID == next {
			v.Next = p.Name
		}
	}
	if v.Locked > 0 {
		v.Meters[0].Note = number(featureProjects, int64(v.Locked)) + " locked"
		v.Unlock, err = a.enough(ctx, v.Plan, featureProjects, int64(len(v.Projects)))
	}
	return err
}

func (a *App) loadPlans(ctx context.Context, v *view) error {
	all, err := a.store.Plans(ctx)
	if err != nil {
		return err
	}
	for _, p := range all {
		v.Plans = append(v.Plans, planCard{
			Key: p.Key, Current: p.Key == v.Plan,
			Projects: amount(featureProjects, p.Features[featureProjects]),
			Seats:    amount(featureSeats, p.Features[featureSeats]),
			Storage:  amount(featureStorage, inBytes(p.Limits.MaxStorageMB)),
		})
	}
	return nil
}

func (a *App) show(w http.ResponseWriter, r *http.Request) {
	if !schemas.ValidID(r.PathValue("workspace")) {
		http.NotFound(w, r)
		return
	}
	a.page(w, r, nil)
}
