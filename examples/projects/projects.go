package projects

import (
	"context"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/enforcement/usage"
)

// createProject counts the project and inserts it, in one transaction. Whatever fails
// after Consume gives the unit back with the rollback.
func (a *App) createProject(ctx context.Context, workspace string, r *http.Request) (done, error) {
	name, err := nameIn(r)
	if err != nil {
		return done{}, err
	}
	id, err := newID()
	if err != nil {
		return done{}, err
	}
	var balance usage.Balance
	err = a.write(ctx, func(tx pgx.Tx) error {
		var err error
		// The resource is what a downgrade can lock.
		balance, err = a.counters.Consume(ctx, tx, usage.Change{
			WorkspaceID: workspace, Feature: featureProjects, Quantity: 1, ResourceID: id,
		})
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO projects_app.projects (workspace_id, id, name) VALUES (@workspace, @id, @name)`,
			pgx.NamedArgs{"workspace": workspace, "id": id, "name": name})
		return taken(err, name)
	})
	return created(id, balance), err
}

// renameProject stands for every change of a project: a locked one refuses it.
func (a *App) renameProject(ctx context.Context, workspace string, r *http.Request) (done, error) {
	id := r.PathValue("id")
	name, err := nameIn(r)
	if err != nil {
		return done{}, err
	}
	return done{ID: id}, a.write(ctx, func(tx pgx.Tx) error {
		if err := a.counters.CheckResource(ctx, tx, workspace, featureProjects, id); err != nil {
			return err
		}
		return taken(changeOne(ctx, tx, `UPDATE projects_app.projects SET name = @name WHERE workspace_id = @workspace AND id = @id`,
			pgx.NamedArgs{"workspace": workspace, "id": id, "name": name}), name)
	})
}

// deleteProject gives the unit back. A locked project may be deleted; when another one is,
// the oldest locked one is free again by itself.
func (a *App) deleteProject(ctx context.Context, workspace string, r *http.Request) (done, error) {
	id := r.PathValue("id")
	return done{ID: id}, a.write(ctx, func(tx pgx.Tx) error {
		err := changeOne(ctx, tx, `DELETE FROM projects_app.projects WHERE workspace_id = @workspace AND id = @id`,
			pgx.NamedArgs{"workspace": workspace, "id": id})
		if err != nil {
			return err
		}
		_, err = a.counters.Release(ctx, tx, usage.Change{
			WorkspaceID: workspace, Feature: featureProjects, Quantity: 1, ResourceID: id,
		})
		return err
	})
}

// keepProjects is the choice of which projects stay unlocked.
func (a *App) keepProjects(ctx context.Context, workspace string, r *http.Request) (done, error) {
	chosen := r.PostForm["keep"]
	state, err := a.locks(ctx, workspace)
	if err != nil {
		return done{}, err
	}
	if len(chosen) > state.allowed {
		return done{}, &wrong{"keep", fmt.Sprintf("names %d projects; the plan allows %d", len(chosen), state.allowed)}
	}
	return done{}, a.counters.Keep(ctx, workspace, featureProjects, chosen)
}

// keepProject unlocks one project instead of the last of those that are unlocked.
func (a *App) keepProject(ctx context.Context, workspace string, r *http.Request) (done, error) {
	id := r.PathValue("id")
	state, err := a.locks(ctx, workspace)
	switch {
	case err != nil:
		return done{}, err
	case !state.locked[id]:
		return done{ID: id}, nil
	case len(state.unlocked) == 0:
		return done{}, &wrong{"id", "cannot be kept instead of another: the plan leaves none unlocked"}
	}
	chosen := append(state.unlocked[:len(state.unlocked)-1], id)
	return done{ID: id}, a.counters.Keep(ctx, workspace, featureProjects, chosen)
}

// locks is which projects a plan has locked.
type locks struct {
	locked map[string]bool
	// unlocked are in the order in which they stay so: the last is the next to be locked.
	unlocked []string
	// allowed is how many may be unlocked.
	allowed int
}

func (a *App) locks(ctx context.Context, workspace string) (locks, error) {
	state := locks{locked: make(map[string]bool)}
	query := usage.ResourceQuery{WorkspaceID: workspace, Feature: featureProjects}
	for {
		page, err := a.counters.Resources(ctx, query)
		if err != nil {
			return locks{}, err
		}
		for _, resource := range page.Resources {
			if resource.Locked {
				state.locked[resource.ID] = true
			} else {
				state.unlocked = append(state.unlocked, resource.ID)
			}
		}
		if query.After = page.Next; query.After == "" {
			state.allowed = len(state.unlocked) + len(state.locked)
			if limit, bounded := page.Limit.Value(); bounded {
				state.allowed = int(min(limit, int64(state.allowed)))
			}
			return state, nil
		}
	}
}
