package projects

import (
	"context"
	"net/http"
	"net/mail"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/enforcement/guard"
	"github.com/headroomhq/headroom/enforcement/usage"
)

// invite takes a seat. No counter is kept of seats: guard counts the rows that are there,
// with a lock in Postgres, so that no other invitation comes between count and insert.
func (a *App) invite(ctx context.Context, workspace string, r *http.Request) (done, error) {
	email, err := emailIn(r)
	if err != nil {
		return done{}, err
	}
	_, details, err := guard.Guard(ctx, a.guards,
		guard.Request{Organization: workspace, Privilege: featureSeats, Requested: 1},
		guard.Callbacks[struct{}, pgx.Tx]{
			Count: func(ctx context.Context, tx pgx.Tx) (guard.Usage, error) { return countSeats(ctx, tx, workspace) },
			Act: func(ctx context.Context, tx pgx.Tx) (struct{}, error) {
				return struct{}{}, insertInvitation(ctx, tx, workspace, email)
			},
		})
	return created(email, usage.Balance{Used: details.Usage.Total + 1, Limit: details.Limit}), err
}

// queryer is the pool, or a transaction.
type queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// countSeats is one statement, so that an invitation which becomes a member meanwhile is
// counted once.
func countSeats(ctx context.Context, q queryer, workspace string) (guard.Usage, error) {
	rows, err := q.Query(ctx, `
		SELECT (SELECT count(*) FROM projects_app.members WHERE workspace_id = @workspace) AS members,
			(SELECT count(*) FROM projects_app.invitations WHERE workspace_id = @workspace) AS invitations`,
		pgx.NamedArgs{"workspace": workspace})
	if err != nil {
		return guard.Usage{}, err
	}
	n, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[struct{ Members, Invitations int64 }])
	return guard.Usage{
		Total: n.Members + n.Invitations,
		Parts: map[string]int64{"members": n.Members, "invitations": n.Invitations},
	}, err
}

func insertInvitation(ctx context.Context, tx pgx.Tx, workspace, email string) error {
	tag, err := tx.Exec(ctx, `
		INSERT INTO projects_app.invitations (workspace_id, email) SELECT @workspace, @email
		WHERE NOT EXISTS (SELECT FROM projects_app.members WHERE workspace_id = @workspace AND email = @email)`,
		pgx.NamedArgs{"workspace": workspace, "email": email})
	if err == nil && tag.RowsAffected() == 0 {
		return &conflict{email + " is a member already"}
	}
	return taken(err, email)
}

// accept makes an invitation a member. The seat was taken before, so nothing is guarded.
func (a *App) accept(ctx context.Context, workspace string, r *http.Request) (done, error) {
	email, err := emailIn(r)
	if err != nil {
		return done{}, err
	}
	return done{ID: email}, a.write(ctx, func(tx pgx.Tx) error {
		return changeOne(ctx, tx, `
			WITH accepted AS (
				DELETE FROM projects_app.invitations WHERE workspace_id = @workspace AND email = @email RETURNING workspace_id, email)
			INSERT INTO projects_app.members (workspace_id, email) SELECT workspace_id, email FROM accepted`,
			pgx.NamedArgs{"workspace": workspace, "email": email})
	})
}

// removeSeat frees a member's seat or withdraws an invitation.
func (a *App) removeSeat(ctx context.Context, workspace string, r *http.Request) (done, error) {
	email, err := emailIn(r)
	if err != nil {
		return done{}, err
	}
	return done{ID: email}, a.write(ctx, func(tx pgx.Tx) error {
		return changeOne(ctx, tx, `
			WITH member AS (
				DELETE FROM projects_app.members WHERE workspace_id = @workspace AND email = @email RETURNING email),
			invited AS (
				DELETE FROM projects_app.invitations WHERE workspace_id = @workspace AND email = @email RETURNING email)
			SELECT email FROM member UNION ALL SELECT email FROM invited`,
			pgx.NamedArgs{"workspace": workspace, "email": email})
	})
}

func emailIn(r *http.Request) (string, error) {
	address, err := mail.ParseAddress(strings.TrimSpace(r.PostFormValue("email")))
	if err != nil || len(address.Address) > longestEmail {
		return "", &wrong{"email", "must be an e-mail address"}
	}
	return strings.ToLower(address.Address), nil
}

const longestEmail = 254
