package projects

import (
	"context"
	"net/http"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/enforcement/usage"
)

const (
	kilobyte = 1 << 10
	// largestFile keeps a size a size; the plan's storage is the limit that matters.
	largestFile = 1 << 20 // kilobytes
)

// storeFile counts a file's bytes and inserts it. The bytes themselves would go to where
// files are kept; this example keeps the name and the size.
func (a *App) storeFile(ctx context.Context, workspace string, r *http.Request) (done, error) {
	name, err := nameIn(r)
	if err != nil {
		return done{}, err
	}
	size, err := strconv.ParseInt(r.PostFormValue("size_kb"), 10, 64)
	if err != nil || size < 1 || size > largestFile {
		return done{}, &wrong{"size_kb", "must be a whole number of kilobytes from 1 to 1048576"}
	}
	id, err := newID()
	if err != nil {
		return done{}, err
	}
	size *= kilobyte
	var balance usage.Balance
	err = a.write(ctx, func(tx pgx.Tx) error {
		var err error
		balance, err = a.counters.Consume(ctx, tx, usage.Change{WorkspaceID: workspace, Feature: featureStorage, Quantity: size})
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO projects_app.files (workspace_id, id, name, size_bytes) VALUES (@workspace, @id, @name, @size)`,
			pgx.NamedArgs{"workspace": workspace, "id": id, "name": name, "size": size})
		return err
	})
	return created(id, balance), err
}

// deleteFile gives back as many bytes as the row says, whatever the form says.
func (a *App) deleteFile(ctx context.Context, workspace string, r *http.Request) (done, error) {
	id := r.PathValue("id")
	return done{ID: id}, a.write(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `DELETE FROM projects_app.files WHERE workspace_id = @workspace AND id = @id RETURNING size_bytes`,
			pgx.NamedArgs{"workspace": workspace, "id": id})
		if err != nil {
			return err
		}
		sizes, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return err
		}
		if len(sizes) == 0 {
			return errNotFound
		}
		_, err = a.counters.Release(ctx, tx, usage.Change{WorkspaceID: workspace, Feature: featureStorage, Quantity: sizes[0]})
		return err
	})
}
