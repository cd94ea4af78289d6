package devstack_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/cmd/headroom/devstack"
)

func TestAStackAnswersUntilItIsStopped(t *testing.T) {
	t.Parallel()
	for name, durable := range map[string]bool{"for tests": false, "durable": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := enterable(t)
			stack, err := devstack.Start(t.Context(), devstack.Options{
				Dir: dir, Postgres: true, Redis: true, NATS: true, Durable: durable,
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := answers(t.Context(), stack); err != nil {
				t.Error(err)
			}
			assertStrangersRefused(t, stack)
			if stack.NATSServer().ClientURL() == "" {
				t.Error("the NATS server has no address")
			}
			for range 2 {
				if err := stack.Stop(t.Context()); err != nil {
					t.Errorf("stop: %v", err)
				}
			}
			if err := answers(t.Context(), stack); err == nil {
				t.Error("the stack still answers after Stop")
			}
			assertNothingLeft(t, dir, nil)
		})
	}
}

func TestAServiceNotChosenHasNoAddress(t *testing.T) {
	t.Parallel()
	stack, err := devstack.Start(t.Context(), devstack.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if all := stack.PostgresURL() + stack.RedisURL() + stack.NATSURL(); all != "" {
		t.Errorf("nothing was chosen, but there is %s", all)
	}
	if stack.NATSServer() != nil {
		t.Error("nothing was chosen, but there is a NATS server")
	}
	if err := stack.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestManyStartAtOnce(t *testing.T) {
	t.Parallel()
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			stack, err := devstack.Start(t.Context(), devstack.Options{Redis: true, NATS: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { stopAtEnd(t, stack) })
			err = errors.Join(askRedis(t.Context(), stack.RedisURL()), askNATS(t.Context(), stack.NATSURL()))
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTheFallbackServesOnlyInPlaceOfAMissingRedis(t *testing.T) {
	t.Parallel()
	missing := &devstack.MissingError{Service: "Redis", Programs: []string{"redis-server"}, Apt: "redis-server", Brew: "redis"}
	broken := errors.New("broken")
	tests := map[string]struct {
		allowed bool
		cause   error
		serves  bool
	}{
		"missing, allowed":     {allowed: true, cause: missing, serves: true},
		"missing, not allowed": {allowed: false, cause: missing},
		"broken":               {allowed: true, cause: broken},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log strings.Builder
			stand, err := devstack.FallBack(devstack.Options{
				RedisFallback: test.allowed, Log: slog.New(slog.NewTextHandler(&log, nil)),
			}, test.cause)
			if !test.serves {
				if !errors.Is(err, test.cause) {
					t.Errorf("got %v, want the cause", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { stopAtEnd(t, stand) })
			if err := askRedis(t.Context(), stand.URL()); err != nil {
				t.Error(err)
			}
			if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "apt-get install redis-server") {
				t.Errorf("the log does not warn and say what to install: %s", log.String())
			}
			assertExpires(t, stand.URL())
		})
	}
}

// assertStrangersRefused tries each service without its password.
func assertStrangersRefused(t *testing.T, stack *devstack.Stack) {
	t.Helper()
	doors := map[string]func(ctx context.Context, address string) error{
		stack.PostgresURL(): askPostgres, stack.RedisURL(): askRedis, stack.NATSURL(): askNATS,
	}
	for address, ask := range doors {
		for _, user := range []*url.Userinfo{nil, url.UserPassword("headroom", "guess")} {
			u, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			u.User = user
			if err := ask(t.Context(), u.String()); err == nil {
				t.Errorf("%s was let in", u)
			}
		}
	}
}

// assertExpires shows that a key goes away by the clock.
func assertExpires(t *testing.T, address string) {
	t.Helper()
	options, err := redis.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	if err := client.Set(t.Context(), "key", "value", 200*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		if n, err := client.Exists(t.Context(), "key").Result(); err != nil || n != 0 {
			return fmt.Sprintf("the key with 200 ms to live is there (%v)", err)
		}
		return ""
	})
}

// answers asks each service of a stack to do its work.
func answers(ctx context.Context, stack *devstack.Stack) error {
	return errors.Join(
		askPostgres(ctx, stack.PostgresURL()), askRedis(ctx, stack.RedisURL()), askNATS(ctx, stack.NATSURL()))
}

func askPostgres(ctx context.Context, address string) error {
	session, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	var settings string
	err = session.QueryRow(ctx,
		`SELECT current_database() || ' ' || current_setting('server_encoding') || ' ' || current_setting('timezone')`).Scan(&settings)
	if err == nil && settings != "headroom UTF8 UTC" {
		err = fmt.Errorf("database, encoding and time zone are %q", settings)
	}
	return errors.Join(err, session.Close(ctx))
}

func askRedis(ctx context.Context, address string) error {
	options, err := redis.ParseURL(address)
	if err != nil {
		return err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp4", options.Addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	options.MaxRetries = -1
	client := redis.NewClient(options)
	return errors.Join(client.Set(ctx, "asked", "yes", 0).Err(), client.Close())
}

func askNATS(ctx context.Context, address string) error {
	conn, err := nats.Connect(address)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	_, err = js.AccountInfo(ctx)
	return err
}

func stopAtEnd(t *testing.T, service interface{ Stop(context.Context) error }) {
	t.Helper()
	if err := service.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Errorf("stop: %v", err)
	}
}
