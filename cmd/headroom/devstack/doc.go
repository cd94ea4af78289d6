// Package devstack starts private NATS, Redis and PostgreSQL servers for
// `headroom dev`, for the tests and for the benches, and leaves nothing behind. For the
// tests there is a PgBouncer too.
//
//	   this process                         children, each in its own process group
//	┌──────────────────┐   launch.sh     ┌───────────────────┐
//	│ Postgres  Redis  ├────────────────►│ postgres          │ an unprivileged user
//	│                  │                 │ redis-server      │ when we are root
//	│ NATS (in here)   │                 └─────────▲─────────┘
//	│                  │                           │ stops them, removes the
//	│  write end ══════╪═══ pipe ═══► guard.sh ────┘ directories, at end of file
//	└──────────────────┘
//
// Every service has a private directory, a port on 127.0.0.1 that was free, and a
// password made for this start: two runs at once, or another user of the machine,
// cannot meet each other's data.
//
// Stop ends the services in order and removes the directories. When this process
// ends without Stop, killed or not, the operating system closes the pipe, and the
// guard does the same. A child reports its process id to the guard before
// it becomes the service, so there is no moment at which a kill leaks one; and an
// id is withdrawn when its process was reaped, so that no other is ever hit.
//
// The directories are of no use after the process that made them: Durable decides
// whether a service may lose data when it is killed and restarted, not whether
// data outlives the program.
package devstack
