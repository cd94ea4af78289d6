package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"

	"github.com/alecthomas/kong"
)

// program is what a command works with beside its own flags.
type program struct {
	getenv         func(string) string
	stdout, stderr io.Writer
}

// usageError is a command line or a setting that cannot be understood. Hint is
// what to do about it, and may be empty.
type usageError struct {
	Err  error
	Hint string
}

// Error is the fault, and the hint on a line of its own.
func (e *usageError) Error() string {
	if e.Hint == "" {
		return e.Err.Error()
	}
	return e.Err.Error() + "\n" + e.Hint
}

// Unwrap is the fault.
func (e *usageError) Unwrap() error { return e.Err }

// run is the whole program: it reads the arguments, runs the command they name
// and returns its error. It ends when ctx does; a serve that was asked to end
// has done its work and returns nil.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	helped := false
	parser, err := kong.New(&cli{},
		kong.Name("headroom"),
		kong.Description("Headroom decides whether a workspace's plan has room for one more execution.\n\n"+
			"Settings are environment variables that begin with HEADROOM_; README lists them. "+
			"Exit codes: 0 done, 1 failed, 2 wrong usage or wrong settings."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { helped = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if err != nil {
		return fmt.Errorf("build the command line: %w", err)
	}
	if len(args) > 0 && args[0] == "help" {
		args = append(slices.Clone(args[1:]), "--help")
	}
	command, err := parser.Parse(args)
	switch {
	case helped:
		return nil
	case err != nil:
		return &usageError{Err: err, Hint: helpHint(err)}
	}
	return command.Run(&program{getenv: getenv, stdout: stdout, stderr: stderr})
}

// helpHint names the help of the command that was meant, as far as it was read.
func helpHint(err error) string {
	command := "headroom"
	if parse, ok := errors.AsType[*kong.ParseError](err); ok && parse.Context != nil {
		if node := parse.Context.Selected(); node != nil {
			command = node.FullPath()
		}
	}
	return "Run \"" + command + " --help\" for usage."
}

// settings reads the configuration and makes the logger it asks for. What is
// set but has no effect is logged as a warning, or stands beside the faults.
func (p *program) settings() (Config, *slog.Logger, error) {
	config, err := LoadConfig(p.getenv, os.ReadFile)
	unused := unusedVariables(p.getenv, os.Environ())
	if faulty, ok := errors.AsType[*ConfigError](err); ok {
		for _, u := range unused {
			faulty.Faults = append(faulty.Faults, fmt.Errorf("%s: has no effect: %s", u.Variable, u.Reason))
		}
	}
	if err != nil {
		return Config{}, nil, &usageError{Err: err}
	}
	log := newLogger(p.stderr, config)
	for _, warning := range unused {
		log.Warn("setting has no effect", "variable", warning.Variable, "reason", warning.Reason)
	}
	return config, log, nil
}
