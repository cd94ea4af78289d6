package schematest_test

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/schemas/schematest"
)

func TestEachTestHasAnEmptyRedisOfItsOwn(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"one", "two", "three"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := schematest.Redis(t)
			value, err := client.SetArgs(t.Context(), "key", "mine", redis.SetArgs{Get: true}).Result()
			if !errors.Is(err, redis.Nil) {
				t.Fatalf("a fresh database answered %q, %v; want no such key", value, err)
			}
			options, err := redis.ParseURL(schematest.RedisURL(t))
			if err != nil {
				t.Fatal(err)
			}
			other := redis.NewClient(options)
			defer func() { _ = other.Close() }()
			if got := other.Get(t.Context(), "key").Val(); got != "mine" {
				t.Errorf("RedisURL leads to a database where key = %q, want the one that Redis wrote", got)
			}
		})
	}
}

func TestADatabaseIsEmptyForTheNextTest(t *testing.T) {
	t.Parallel()
	numbers := map[string]bool{}
	// More than there are databases: some are lent a second time.
	for range 600 {
		t.Run("borrower", func(t *testing.T) {
			numbers[schematest.RedisURL(t)] = true
			client := schematest.Redis(t)
			if size := client.DBSize(t.Context()).Val(); size != 0 {
				t.Fatalf("the database came with %d keys", size)
			}
			if err := client.Set(t.Context(), "key", "left", 0).Err(); err != nil {
				t.Fatal(err)
			}
		})
	}
	if len(numbers) == 600 {
		t.Error("no database was lent twice, so nothing was shown")
	}
}

func TestARedisServerKilledAndRestarted(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		durable bool
		want    string
	}{
		"comes back empty":               {durable: false, want: ""},
		"durable, has what it confirmed": {durable: true, want: "value"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := schematest.RedisServer
			if test.durable {
				server = schematest.DurableRedisServer
			}
			running := server(t)
			options, err := redis.ParseURL(running.URL())
			if err != nil {
				t.Fatal(err)
			}
			client := redis.NewClient(options)
			defer func() { _ = client.Close() }()
			if err := client.Set(t.Context(), "key", "value", 0).Err(); err != nil {
				t.Fatal(err)
			}
			if err := running.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := client.Ping(t.Context()).Err(); err == nil {
				t.Error("the killed server still answers")
			}
			if err := running.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := client.Get(t.Context(), "key").Val(); got != test.want {
				t.Errorf("after the restart key = %q, want %q", got, test.want)
			}
		})
	}
}
