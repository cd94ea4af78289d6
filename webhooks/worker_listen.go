package webhooks

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// longestListenPause bounds how late a process is woken again after Postgres was away.
// Until then it looks once a glance.
const longestListenPause = 5 * time.Second

// listen wakes at each commit in another process that asks for a look-up by hand. It
// connects again whenever its session ends, until ctx does.
func (w *Worker) listen(ctx context.Context, woken chan<- struct{}) error {
	for failures := 0; ctx.Err() == nil; failures++ {
		if err := w.hear(ctx, woken, func() { failures = 0 }); err != nil && ctx.Err() == nil && failures == 0 {
			w.log.WarnContext(ctx, "look-ups asked for elsewhere are found by polling until postgres is heard again", "error", err)
		}
		timer := time.NewTimer(min(glance<<min(failures, 3), longestListenPause))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
	return nil
}

func (w *Worker) hear(ctx context.Context, woken chan<- struct{}, connected func()) error {
	// The session is none of the pool's, which would hand it to others.
	session, err := pgx.ConnectConfig(ctx, w.ledger.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() { _ = session.Close(context.WithoutCancel(ctx)) }()
	if _, err := session.Exec(ctx, "LISTEN "+wakeChannel); err != nil {
		return err
	}
	connected()
	for {
		select {
		case woken <- struct{}{}:
		default:
		}
		if _, err := session.WaitForNotification(ctx); err != nil {
			return err
		}
	}
}
