package main

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/headroomhq/headroom/enforcement/client"
	"github.com/headroomhq/headroom/examples/engine"
)

const (
	// engineSource is the source of the example engine's events.
	engineSource = "headroom-dev/engine"
	// engineBatch ends the ids of its workflows.
	engineBatch = "1"
)

// runEngine lets the example engine run its samples, over a connection like any
// engine's.
func (d *dev) runEngine(ctx context.Context) error {
	nc, err := nats.Connect(d.config.NATSURL.Reveal(), append(natsIdentity(d.config), nats.Timeout(tryTimeout))...)
	if err != nil {
		return fmt.Errorf("connect the engine to nats: %w", err)
	}
	defer nc.Close()
	headroom, err := client.New(nc, client.Options{Source: engineSource, Topology: d.config.topology(), Log: d.log})
	if err != nil {
		return err
	}
	defer headroom.Close()
	d.say("\nNow an engine runs six workflows of its own at once. All it takes to ask Headroom is in examples/engine/integration.go:\n")
	if err := engine.New(headroom, d.out).Run(ctx, engine.Samples(engineBatch)); err != nil {
		return fmt.Errorf("run the engine: %w", err)
	}
	return nil
}
