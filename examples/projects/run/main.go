// Command run serves the application of package projects.
//
//	go run ./examples/projects/run
//
// It starts a private PostgreSQL and a free port, prints the address, and ends with
// Ctrl-C; nothing is left. Beside a running Headroom it uses that one's database, and
// hears over NATS of every change of a plan. The plans there need the features projects
// and seats:
//
//	NATS_URL=nats://127.0.0.1:4222 POSTGRES_URL=postgres://127.0.0.1:5432/headroom go run ./examples/projects/run
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/headroomhq/headroom/examples/projects"
)

// patience is how long what was started may take to end.
const patience = 30 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "projects:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, getenv func(string) string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("projects", flag.ContinueOnError)
	address := flags.String("addr", "127.0.0.1:0", "`address` to serve on; port 0 takes a free one")
	if err := flags.Parse(args); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	headroom, err := open(ctx, getenv("NATS_URL"), getenv("POSTGRES_URL"), log)
	defer func() { err = errors.Join(err, headroom.close(ctx)) }()
	if err != nil {
		return err
	}
	app, err := projects.New(ctx, projects.Options{Pool: headroom.pool, Plans: headroom.plans, Store: headroom.store, Log: log})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		return fmt.Errorf("serve on %s: %w", *address, err)
	}
	fmt.Fprintf(out, "http://%s/ (Ctrl-C ends it)\n", listener.Addr())
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return headroom.follow(ctx) })
	group.Go(func() error { return serve(ctx, listener, app.Handler()) })
	return group.Wait()
}

// serve answers until ctx ends, and then lets those that were begun finish.
func serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	ended := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		ended <- server.Shutdown(ending)
	})
	err := server.Serve(listener)
	if stop() {
		return err // it failed by itself
	}
	return <-ended
}
