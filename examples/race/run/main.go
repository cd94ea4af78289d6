// Command run plays the race of package race and prints its ways side by side.
//
//	go run ./examples/race/run -requests 60 -limit 5
//
// It starts a private PostgreSQL. With POSTGRES_URL it uses that server, in a database
// that it makes and drops. The exit code is 1 when a protected way went over.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/headroomhq/headroom/examples/race"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Getenv("POSTGRES_URL"), os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "race:", err)
		os.Exit(1)
	}
}

// errUsage is a wrong flag, which the flag set has told of.
var errUsage = errors.New("wrong usage")

func run(ctx context.Context, args []string, postgresURL string, out, faults io.Writer) (err error) {
	flags := flag.NewFlagSet("race", flag.ContinueOnError)
	flags.SetOutput(faults)
	requests := flags.Int("requests", 60, "how many `requests` want one more project at once")
	limit := flags.Int64("limit", 5, "how many `projects` are allowed; one fewer exist")
	format := flags.String("o", "table", "`format` of the output: table or json")
	if err := flags.Parse(args); err != nil {
		return errors.Join(errUsage, err)
	}
	if flags.NArg() > 0 || *requests < 1 || *requests > 10_000 || *limit < 1 || *limit > 10_000 || (*format != "table" && *format != "json") {
		flags.Usage()
		return errUsage
	}
	database, drop, err := database(ctx, postgresURL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop()) }()
	r, err := race.New(ctx, race.Options{PostgresURL: database, Limit: *limit, Requests: *requests})
	if err != nil {
		return err
	}
	defer r.Close()
	results, err := r.Play(ctx)
	if err != nil {
		return err
	}
	if *format == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(results)
	} else {
		err = race.Print(out, results)
	}
	return errors.Join(err, race.Broken(results, *limit))
}
