package devstack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
)

// program is what a daemon leaves to the service that embeds it.
type program interface {
	// launch starts the server on the port and waits until it answers; on an error
	// no server is left.
	launch(ctx context.Context) error
	// logStop tells the log that the server stopped.
	logStop()
}

// daemon is what Postgres, Redis and PgBouncer have in common: a server that is a child of
// this process, and keeps its directory, port and password over restarts.
type daemon struct {
	program program
	// service is its name in errors.
	service string
	log     *slog.Logger

	password string
	home     *home

	mu      sync.Mutex
	port    int
	server  *child
	stopped bool
}

// moveIn makes the private directory, below parent, and the password. When we are
// root, the server will run as the named user, or as nobody where there is none.
func (d *daemon) moveIn(parent, user string) error {
	own, err := unprivileged(user, "nobody")
	if err != nil {
		return err
	}
	d.home, err = newHome(parent, "headroom-"+user+"-", own)
	d.password = newPassword()
	return err
}

// launchOnFreePort is the first launch, which chooses the port.
func (d *daemon) launchOnFreePort(ctx context.Context) error {
	return onFreePort(ctx, func(port int) error {
		d.port = port
		return d.program.launch(ctx)
	})
}

// run starts the server and waits until it answers; on an error no server is left.
func (d *daemon) run(ctx context.Context, c command, probe func(context.Context) error) error {
	server, err := d.home.start(c)
	if err != nil {
		return err
	}
	d.server = server
	if err := server.awaitReady(ctx, probe); err != nil {
		return errors.Join(err, server.kill())
	}
	return nil
}

// PID is the process id of the server, for signals such as SIGSTOP; the last one
// when it is not running.
func (d *daemon) PID() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.server.cmd.Process.Pid
}

// Kill ends the server as a crash would: SIGKILL, to those of PostgreSQL's sessions
// too. It returns when the server's first process is gone.
func (d *daemon) Kill() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.server.kill()
}

// Restart starts the server again on its port and directory, after an orderly stop
// when it is running, and returns when it answers. A Redis without Durable comes
// back empty.
func (d *daemon) Restart(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return errStopped
	}
	ctx, cancel := withPatience(ctx, startPatience)
	defer cancel()
	if err := d.server.shutdown(ctx); err != nil {
		return fmt.Errorf("restart %s: %w", d.service, err)
	}
	if err := relaunch(ctx, d.program.launch); err != nil {
		return fmt.Errorf("restart %s: %w", d.service, err)
	}
	return nil
}

// Stop ends the server in an orderly way, cutting its sessions, and removes its
// directory. At the context's deadline, or after ten seconds, the server is
// killed, which is an error. A second call does nothing.
func (d *daemon) Stop(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return nil
	}
	d.stopped = true
	if err := errors.Join(d.server.shutdown(ctx), d.home.close()); err != nil {
		return fmt.Errorf("stop %s: %w", d.service, err)
	}
	d.program.logStop()
	return nil
}
