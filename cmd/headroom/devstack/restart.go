package devstack

import (
	"context"
	"errors"
	"time"
)

// errStopped answers a Restart after Stop: the directory is gone.
var errStopped = errors.New("the service was stopped for good; start another")

const restartTries = 20

// relaunch starts a service again where it was. The old process's last children
// may hold its port or memory for a moment, so an attempt that fails is
// repeated for a few seconds.
func relaunch(ctx context.Context, launch func(context.Context) error) error {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	var err error
	for range restartTries {
		if err = launch(ctx); err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return err
		}
	}
	return err
}
