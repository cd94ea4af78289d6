package devstack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// PgBouncerOptions says what a PgBouncer of our own is to stand in front of.
type PgBouncerOptions struct {
	// Postgres is the postgres:// address of a server, with user and password.
	Postgres string
	// PoolSize is how many connections to each database there may be; 0 is 10.
	PoolSize int
	// Dir is where the private directory is made; empty is the temporary directory.
	Dir string
	// Log hears of the server's life, at debug level; nil discards.
	Log *slog.Logger
}

// PgBouncer is a pooler of our own in transaction mode, reachable on 127.0.0.1 with the
// password of its PostgreSQL. Its methods may be called from several goroutines.
type PgBouncer struct {
	daemon
	executable string
	behind     *url.URL
	poolSize   int
}

// StartPgBouncer starts a pooler and returns when a query through it is answered. The
// context bounds the start only, to a minute when it has no deadline. Without
// PgBouncer on the machine the error is a *MissingError; on any error nothing is
// left running.
func StartPgBouncer(ctx context.Context, options PgBouncerOptions) (*PgBouncer, error) {
	p, err := newPgBouncer(options)
	if err != nil {
		return nil, fmt.Errorf("start PgBouncer: %w", err)
	}
	ctx, cancel := withPatience(ctx, startPatience)
	defer cancel()
	if err := p.launchOnFreePort(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start PgBouncer: %w", err), p.home.close())
	}
	return p, nil
}

func newPgBouncer(options PgBouncerOptions) (*PgBouncer, error) {
	behind, err := url.Parse(options.Postgres)
	if err != nil {
		return nil, fmt.Errorf("read the address of PostgreSQL: %w", err)
	}
	if options.PoolSize == 0 {
		options.PoolSize = 10
	}
	executable, err := pgBouncerProgram()
	if err != nil {
		return nil, err
	}
	p := &PgBouncer{
		daemon:     daemon{service: "PgBouncer", log: orDiscard(options.Log)},
		executable: executable, behind: behind, poolSize: options.PoolSize,
	}
	p.program = p
	// It refuses to be root, and needs no user of its own.
	return p, p.moveIn(options.Dir, "postgres")
}

// URL is the address of the same database through the pooler.
func (p *PgBouncer) URL() string {
	u := *p.behind
	u.Host = address(p.port)
	return u.String()
}

// launch starts the pooler on the port and waits until it answers; on an error
// none is left.
func (p *PgBouncer) launch(ctx context.Context) error {
	password, _ := p.behind.User.Password()
	users := fmt.Sprintf("%q %q\n", p.behind.User.Username(), password)
	if err := errors.Join(p.home.write("users.txt", users), p.home.write("pgbouncer.ini", p.config())); err != nil {
		return err
	}
	err := p.run(ctx, command{
		name: "pgbouncer", program: p.executable, args: []string{p.home.path("pgbouncer.ini")}, stop: syscall.SIGINT,
	}, p.ping)
	if err != nil {
		return err
	}
	p.log.Debug("pgbouncer started", "port", p.port, "pid", p.server.cmd.Process.Pid, "dir", p.home.dir)
	return nil
}

func (p *PgBouncer) logStop() { p.log.Debug("pgbouncer stopped", "port", p.port) }

func (p *PgBouncer) config() string {
	return strings.Join([]string{
		"[databases]",
		fmt.Sprintf("* = host=%s port=%s", p.behind.Hostname(), p.behind.Port()),
		"[pgbouncer]",
		"listen_addr = " + loopback,
		fmt.Sprintf("listen_port = %d", p.port),
		"unix_socket_dir =",
		"auth_type = scram-sha-256",
		"auth_file = " + p.home.path("users.txt"),
		"pool_mode = transaction",
		fmt.Sprintf("default_pool_size = %d", p.poolSize),
		"max_client_conn = 500",
		"",
	}, "\n")
}

// ping makes the simplest of queries: with PgBouncer a session begins before
// the server behind it is reached.
func (p *PgBouncer) ping(ctx context.Context) error {
	session, err := pgx.Connect(ctx, p.URL())
	if err != nil {
		return err
	}
	_, err = session.Exec(ctx, "SELECT 1")
	return errors.Join(err, session.Close(ctx))
}
