package main

// cli is the command line as kong reads it: a field is a command, and each
// command's Run is called with the context and the program.
type cli struct {
	Dev        devCommands   `cmd:"" help:"Run everything on this machine: private NATS, Redis and Postgres, a demo catalog and demo traffic."`
	Serve      serveCmd      `cmd:"" help:"Decide executions: the production process."`
	Doctor     doctorCmd     `cmd:"" help:"Check every service and setting that correctness rests on, and say how to mend what is wrong."`
	Migrate    migrateCmd    `cmd:"" help:"Bring the database and the streams up to date."`
	Plans      plansCmd      `cmd:"" help:"The plan catalog: apply, diff, list, show."`
	Workspaces workspacesCmd `cmd:"" help:"Workspaces and the plans they are on: list, show, assign, override."`
	Invalidate invalidateCmd `cmd:"" help:"Make every running instance read a workspace's plan again."`
	Stripe     stripeCmd     `cmd:"" help:"Stripe: compare, sweep, replay, list, map."`
	Decisions  decisionsCmd  `cmd:"" help:"What was decided for a workspace, newest first."`
	Letters    lettersCmd    `cmd:"" name:"deadletters" help:"Messages that were given up: list, show, replay, drop."`
	Version    versionCmd    `cmd:"" help:"Print the version of this binary."`
}

// output is the -o of every command that lists something.
type output struct {
	Output string `short:"o" enum:"table,json" default:"table" placeholder:"table|json" help:"How to print: ${enum}."`
}

// json reports whether -o json was asked for.
func (o output) json() bool { return o.Output == "json" }
