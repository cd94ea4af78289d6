package devstack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// Names inside a cluster of our own.
const (
	postgresUser     = "headroom"
	postgresDatabase = "headroom"
)

// PostgresOptions says how a PostgreSQL cluster of our own is to run. The zero value is
// a cluster in the system's temporary directory that does not wait for its disk.
type PostgresOptions struct {
	// Dir is where the private directory is made; empty is the temporary directory.
	Dir string
	// Durable leaves fsync and its companions on. Without it a commit survives a killed
	// server, but not a crash of the machine.
	Durable bool
	// TLS, when set, makes the server offer TLS; it takes plain connections too, so that a
	// client that falls back is found out. Without Clients.
	TLS Certificate
	// Log hears of the server's life, at debug level; nil discards.
	Log *slog.Logger
}

// Postgres is a cluster of our own with an empty database, reachable on 127.0.0.1
// with a password: UTF-8, ordered byte by byte, time zone UTC. Its methods may be
// called from several goroutines.
type Postgres struct {
	daemon
	programs string
	durable  bool
	tls      Certificate
}

// StartPostgres creates a cluster, starts it and returns when it answers. The
// context bounds the start only, to a minute when it has no deadline.
// Without PostgreSQL on the machine the error is a *MissingError; on any error
// nothing is left running.
func StartPostgres(ctx context.Context, options PostgresOptions) (*Postgres, error) {
	p, err := newPostgres(options)
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	ctx, cancel := withPatience(ctx, startPatience)
	defer cancel()
	err = p.initialise(ctx)
	if err == nil {
		err = p.launchOnFreePort(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start PostgreSQL: %w", err), p.home.close())
	}
	if err := p.createDatabase(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start PostgreSQL: %w", err), p.Stop(ctx))
	}
	return p, nil
}

func newPostgres(options PostgresOptions) (*Postgres, error) {
	programs, err := postgresPrograms()
	if err != nil {
		return nil, err
	}
	p := &Postgres{
		daemon:   daemon{service: "PostgreSQL", log: orDiscard(options.Log)},
		programs: programs, durable: options.Durable, tls: options.TLS,
	}
	p.program = p
	if err := p.moveIn(options.Dir, "postgres"); err != nil {
		return nil, err
	}
	return p, nil
}

// URL is a postgres:// address of the database with the password, as the cluster's
// superuser; with a certificate it asks for sslmode=verify-full. It stays the same
// over restarts.
func (p *Postgres) URL() string {
	plain := p.database(postgresDatabase)
	if p.tls.on() {
		return strings.Replace(plain, "sslmode=disable", "sslmode=verify-full", 1)
	}
	return plain
}

// initialise creates the cluster's files with a password for its only user.
func (p *Postgres) initialise(ctx context.Context) error {
	if err := p.home.write("password", p.password+"\n"); err != nil {
		return err
	}
	made, err := p.home.start(command{
		name:    "initdb",
		program: filepath.Join(p.programs, "initdb"),
		args: []string{
			"--pgdata", p.home.path("data"), "--username", postgresUser, "--pwfile", p.home.path("password"),
			"--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync",
		},
		stop: syscall.SIGTERM,
	})
	if err != nil {
		return err
	}
	return made.wait(ctx)
}

// launch starts the server on the port and waits until it answers; on an error
// no server is left.
func (p *Postgres) launch(ctx context.Context) error {
	if err := p.tls.move(p.home); err != nil {
		return err
	}
	arguments := []string{"-D", p.home.path("data")}
	for _, setting := range p.settings() {
		arguments = append(arguments, "-c", setting)
	}
	err := p.run(ctx, command{
		name: "postgres", program: filepath.Join(p.programs, "postgres"), args: arguments, stop: syscall.SIGINT,
	}, p.ping)
	if err != nil {
		return err
	}
	p.log.Debug("postgres started", "port", p.port, "pid", p.server.cmd.Process.Pid, "dir", p.home.dir)
	return nil
}

func (p *Postgres) logStop() { p.log.Debug("postgres stopped", "port", p.port) }

// settings keep everything inside the private directory, shared memory included,
// and the server small.
func (p *Postgres) settings() []string {
	settings := []string{
		"listen_addresses=" + loopback,
		fmt.Sprintf("port=%d", p.port),
		"unix_socket_directories=",
		"dynamic_shared_memory_type=mmap",
		"max_connections=200",
		"shared_buffers=32MB",
		"timezone=UTC",
		"log_timezone=UTC",
		"logging_collector=off",
		"jit=off",
	}
	if p.tls.on() {
		settings = append(settings, "ssl=on", "ssl_cert_file="+p.home.path(certificateFile), "ssl_key_file="+p.home.path(keyFile))
	}
	if p.durable {
		return settings
	}
	return append(settings,
		// A commit is still written before it is answered, so that it survives Kill.
		"fsync=off", "full_page_writes=off",
		"wal_level=minimal", "max_wal_senders=0", "checkpoint_timeout=30min", "log_checkpoints=off",
		// A test hears of its own errors; the log keeps the server's life.
		"log_min_messages=log", "log_min_error_statement=panic")
}

func (p *Postgres) ping(ctx context.Context) error {
	session, err := pgx.Connect(ctx, p.database("postgres"))
	if err != nil {
		return err
	}
	return session.Close(ctx)
}

func (p *Postgres) createDatabase(ctx context.Context) error {
	session, err := pgx.Connect(ctx, p.database("postgres"))
	if err != nil {
		return fmt.Errorf("connect to create the database: %w", err)
	}
	defer func() { _ = session.Close(ctx) }()
	if _, err := session.Exec(ctx, "CREATE DATABASE "+postgresDatabase); err != nil {
		return fmt.Errorf("create the database: %w", err)
	}
	return nil
}

func (p *Postgres) database(name string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(postgresUser, p.password), Host: address(p.port),
		Path: "/" + name, RawQuery: "sslmode=disable",
	}
	return u.String()
}
