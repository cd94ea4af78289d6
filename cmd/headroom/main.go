package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9/logging"
)

// What a finished process tells its caller.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	logging.Disable() // go-redis prints to stderr what it also returns to its callers
	ctx, stop := onSignals(context.Background(), func() { os.Exit(exitFailed) })
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "headroom: %v\n", err)
	}
	os.Exit(exitCode(err))
}

// exitCode is 0 for nil, 2 for a command line or setting that cannot be
// understood (trying again cannot help), and 1 for everything else.
func exitCode(err error) int {
	if err == nil {
		return exitDone
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	return exitFailed
}

// onSignals ends the context at the first SIGINT or SIGTERM, which asks for an
// orderly end, and calls abort at the second, from somebody who will not wait.
func onSignals(parent context.Context, abort func()) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		if _, asked := <-signals; !asked {
			return
		}
		cancel()
		if _, again := <-signals; again {
			abort()
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel()
	}
}
