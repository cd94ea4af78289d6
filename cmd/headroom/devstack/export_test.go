package devstack

import (
	"context"
	"errors"
	"io/fs"
)

// What tests reach of the inside.
var (
	ErrPortTaken = errPortTaken
	ErrStopped   = errStopped
)

func OnFreePort(ctx context.Context, start func(port int) error) error {
	return onFreePort(ctx, start)
}

func FreePort(ctx context.Context) (int, error) { return freePort(ctx) }

func FindTogether(programs, patterns []string, missing MissingError) (string, error) {
	return findTogether(programs, patterns, missing)
}

func ExecutableBy(info fs.FileInfo, uid, gid uint32) bool {
	return executableBy(info, &owner{uid: uid, gid: gid})
}

func OwnerOf(info fs.FileInfo) (uid, gid uint32) { return ownerOf(info) }

// FallBack is what Start does with what StartRedis returned. The URL is the stand-in's.
func FallBack(options Options, cause error) (redisService, error) {
	options.Log = orDiscard(options.Log)
	return fallBack(options, cause)
}

// RedisOn starts a server on a port of the caller's choice, without a second try.
func RedisOn(ctx context.Context, dir string, port int) error {
	r, err := newRedis(RedisOptions{Dir: dir})
	if err != nil {
		return err
	}
	r.port = port
	if err := r.launch(ctx); err != nil {
		return errors.Join(err, r.home.close())
	}
	return r.Stop(ctx)
}

// PostgresOn starts a cluster on a port of the caller's choice, without a second try.
func PostgresOn(ctx context.Context, dir string, port int) error {
	p, err := newPostgres(PostgresOptions{Dir: dir})
	if err != nil {
		return err
	}
	p.port = port
	err = p.initialise(ctx)
	if err == nil {
		err = p.launch(ctx)
	}
	if err != nil {
		return errors.Join(err, p.home.close())
	}
	return p.Stop(ctx)
}

// NATSOn starts a server on a port of the caller's choice, without a second try.
func NATSOn(ctx context.Context, dir string, port int) error {
	place, err := newHome(dir, "headroom-nats-", nil)
	if err != nil {
		return err
	}
	n := &NATS{options: NATSOptions{Log: orDiscard(nil)}, home: place, port: port}
	if err := n.launch(ctx); err != nil {
		return errors.Join(err, place.close())
	}
	return n.Stop(ctx)
}
