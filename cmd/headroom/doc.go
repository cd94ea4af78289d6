// Command headroom decides, before a workspace's execution runs and while it
// runs, whether the workspace's plan has room for it. This package assembles the
// rooms into one program and decides nothing itself.
//
//	main ─ signals, exit code
//	  └─ run ─ cli.go: one struct a command
//	       │
//	       ├─ serve ── service ── connect: NATS, Redis, PostgreSQL, each awaited and vetted
//	       │             │        consume: Plans ─► Enforcer ─► Consumers ─► ledger
//	       │             └─ http: /healthz, /readyz (health.go), /metrics (metrics.go)
//	       ├─ dev ──── devstack: private services ── serve ── replay of a trace
//	       ├─ migrate                       database and streams up to date
//	       ├─ doctor                        services reached, then judged side by side: doctor_finding.go
//	       ├─ plans, workspaces             what holds, changed and shown; serve tells it
//	       ├─ decisions                     the ledger, and the stream behind it
//	       └─ deadletters                   what was given up: shown, replayed, dropped
//
// Settings are environment variables (settings.go). Results go to stdout, logs
// and notes to stderr.
package main
