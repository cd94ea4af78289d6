// Command run runs the sample workflows of package engine against a Headroom.
//
//	NATS_URL=nats://127.0.0.1:4222 go run ./examples/engine/run
package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/enforcement/client"
	"github.com/headroomhq/headroom/examples/engine"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "engine:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	url := cmp.Or(os.Getenv("NATS_URL"), nats.DefaultURL)
	nc, err := nats.Connect(url, nats.Name("example-engine"), nats.MaxReconnects(-1))
	if err != nil {
		return fmt.Errorf("connect to NATS_URL: %w", err)
	}
	defer nc.Close()
	headroom, err := client.New(nc, client.Options{
		Source: "/examples/engine", Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	defer headroom.Close()
	batch := time.Now().UTC().Format("150405")
	return engine.New(headroom, os.Stdout).Run(ctx, engine.Samples(batch))
}
