package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/headroomhq/headroom/cmd/headroom/replay"
	"github.com/headroomhq/headroom/examples"
	"github.com/headroomhq/headroom/subscriptions"
)

// devInput is what dev works on, checked before anything is started.
type devInput struct {
	trace   replay.Trace
	speed   replay.Speed
	catalog subscriptions.Catalog
	// plans says which plan each workspace of the trace is put on.
	plans map[string]string
}

// read prints the faults of a catalog to stderr.
func (c devCmd) read(p *program) (devInput, error) {
	trace, err := readTrace(c.Trace)
	if err != nil {
		return devInput{}, err
	}
	speed, err := replay.ParseSpeed(c.Speed, trace)
	if err != nil {
		return devInput{}, &usageError{Err: err}
	}
	var catalog subscriptions.Catalog
	if c.Catalog == "" {
		catalog, err = subscriptions.ParseCatalog(examples.CatalogName, examples.Catalog())
	} else {
		catalog, err = p.readCatalog(c.Catalog)
	}
	if err != nil {
		return devInput{}, err
	}
	slices.SortStableFunc(catalog.Plans, func(a, b subscriptions.Plan) int { return int(a.Rank) - int(b.Rank) })
	keys := make([]string, 0, len(catalog.Plans))
	for _, plan := range catalog.Plans {
		keys = append(keys, plan.Key)
	}
	return devInput{trace: trace, speed: speed, catalog: catalog, plans: replay.DealPlans(trace.Workspaces(), keys)}, nil
}

func readTrace(path string) (replay.Trace, error) {
	name, source := examples.TraceName, io.Reader(bytes.NewReader(examples.Trace()))
	if path != "" {
		file, err := os.Open(path)
		if err != nil {
			return replay.Trace{}, fmt.Errorf("read trace: %w", err)
		}
		defer func() { _ = file.Close() }()
		name, source = path, file
	}
	return replay.ReadTrace(name, source)
}

// devSettings is the environment without what names a service, because dev has
// its own, and with defaults that suit a person who watches.
func devSettings(getenv func(string) string) func(string) string {
	quiet := map[string]string{"HEADROOM_HTTP_ADDR": "127.0.0.1:0", "HEADROOM_LOG_LEVEL": "warn"}
	own := []string{
		"HEADROOM_NATS_URL", "HEADROOM_NATS_CREDS", "HEADROOM_NATS_CERT", "HEADROOM_NATS_KEY", "HEADROOM_NATS_REPLICAS",
		"HEADROOM_REDIS_URL", "HEADROOM_POSTGRES_URL",
		"HEADROOM_STRIPE_WEBHOOK_SECRETS", "HEADROOM_STRIPE_API_KEY", "HEADROOM_STRIPE_API_URL", "HEADROOM_STRIPE_MODE",
		"HEADROOM_STRIPE_WEBHOOK_SECRETS" + fileSuffix, "HEADROOM_STRIPE_API_KEY" + fileSuffix,
		"HEADROOM_NATS_URL" + fileSuffix, "HEADROOM_REDIS_URL" + fileSuffix, "HEADROOM_POSTGRES_URL" + fileSuffix,
	}
	return func(name string) string {
		if slices.Contains(own, name) {
			return ""
		}
		if value := getenv(name); value != "" {
			return value
		}
		return quiet[name]
	}
}

// coloured reports whether the writer is a terminal whose user wants colours
// (https://no-color.org).
func coloured(w io.Writer, getenv func(string) string) bool {
	return isTerminal(w) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}
