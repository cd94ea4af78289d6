package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/cmd/headroom/devstack"
)

// patience is how long what was started may take to end.
const patience = 30 * time.Second

// database is the address of an empty database, on the server or on one of our own, and
// what takes it away again.
func database(ctx context.Context, server string) (address string, drop func() error, err error) {
	if server == "" {
		own, err := devstack.StartPostgres(ctx, devstack.PostgresOptions{})
		if err != nil {
			return "", nil, err
		}
		return own.URL(), func() error {
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
			defer cancel()
			return own.Stop(ending)
		}, nil
	}
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return "", nil, fmt.Errorf("POSTGRES_URL must be postgres://… with a host") // without the address: it may hold a password
	}
	name := "headroom_race_" + strings.ToLower(rand.Text())
	if err := execute(ctx, server, "CREATE DATABASE "+name); err != nil {
		return "", nil, fmt.Errorf("make a database for the race: %w", err)
	}
	u.Path = "/" + name
	return u.String(), func() error {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		return execute(ending, server, "DROP DATABASE "+name+" WITH (FORCE)")
	}, nil
}

func execute(ctx context.Context, server, statement string) error {
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_ = conn.Close(closing)
	return err
}
