package schematest

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/headroomhq/headroom/cmd/headroom/devstack"
)

// databases is how many tests of a process can use the shared server at one time.
const databases = 512

// What the tests of this process have in common; tests have no value to carry it in.
var (
	redisServer  shared[*numberedRedis]
	redisURLs    perTest[string]
	redisClients perTest[*redis.Client]
)

// numberedRedis is a server whose databases are lent to tests by number.
type numberedRedis struct {
	*devstack.Redis

	mu   sync.Mutex
	free []int
}

// Redis is a client on a database of the test's own, empty, in a server that the
// tests of the process share. What concerns a whole server, such as FLUSHALL, SCRIPT
// FLUSH, CONFIG SET or CLIENT PAUSE, needs RedisServer instead. A server that
// restarts is RedisServer's business too.
func Redis(t testing.TB) *redis.Client {
	t.Helper()
	return redisClients.of(t, func(t testing.TB) *redis.Client {
		t.Helper()
		return dialRedis(t, RedisURL(t))
	})
}

// RedisURL is the address of the database that Redis gives the same test, with the
// password, for a test that starts processes or opens clients itself.
func RedisURL(t testing.TB) string {
	t.Helper()
	return redisURLs.of(t, func(t testing.TB) string {
		t.Helper()
		running, err := redisServer.get(startNumbered)
		if err != nil {
			t.Fatalf("no Redis for the test: %v", err)
		}
		number, ok := running.lend()
		if !ok {
			t.Fatalf("all %d databases of the test server are in use: ask for Redis after t.Parallel()", databases)
		}
		address := running.database(number)
		t.Cleanup(func() {
			if flush(t, address) {
				running.giveBack(number)
			}
		})
		return address
	})
}

// RedisServer is a server of the test's own that it may kill, restart, pause or
// flush. It comes back empty from a restart.
func RedisServer(t testing.TB) *devstack.Redis {
	t.Helper()
	return privateRedis(t, devstack.RedisOptions{})
}

// DurableRedisServer is a RedisServer with an append-only file: what it answered is
// there after it was killed and restarted.
func DurableRedisServer(t testing.TB) *devstack.Redis {
	t.Helper()
	return privateRedis(t, devstack.RedisOptions{Durable: true})
}

// RedisCluster is a client of a Redis Cluster of the test's own. It has one master,
// which refuses keys of different slots in one command as a larger one does.
func RedisCluster(t testing.TB) *redis.ClusterClient {
	t.Helper()
	options, err := redis.ParseURL(privateRedis(t, devstack.RedisOptions{Cluster: true}).URL())
	if err != nil {
		t.Fatalf("read the address of the test's Redis: %v", err)
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{options.Addr}, Password: options.Password})
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("close the test's Redis client: %v", err)
		}
	})
	return client
}

// RedisStandIn is what `headroom dev` falls back to without Redis. It is for the test
// that keeps this fallback working and for no other: its expiry proves nothing.
func RedisStandIn(t testing.TB) *redis.Client {
	t.Helper()
	started, err := devstack.StartStandIn()
	if err != nil {
		t.Fatalf("no stand-in for the test: %v", err)
	}
	t.Cleanup(func() { stop(t, started) })
	return dialRedis(t, started.URL())
}

func privateRedis(t testing.TB, options devstack.RedisOptions) *devstack.Redis {
	t.Helper()
	ctx, cancel := bounded(t)
	defer cancel()
	started, err := devstack.StartRedis(ctx, options)
	if err != nil {
		t.Fatalf("no Redis for the test: %v", err)
	}
	t.Cleanup(func() { stop(t, started) })
	return started
}

func dialRedis(t testing.TB, address string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(address)
	if err != nil {
		t.Fatalf("read the address of the test's Redis: %v", err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("close the test's Redis client: %v", err)
		}
	})
	return client
}

func startNumbered() (*numberedRedis, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	started, err := devstack.StartRedis(ctx, devstack.RedisOptions{Databases: databases})
	if err != nil {
		return nil, err
	}
	n := &numberedRedis{Redis: started}
	for number := range databases {
		n.free = append(n.free, number)
	}
	return n, nil
}

func (n *numberedRedis) lend() (int, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.free) == 0 {
		return 0, false
	}
	number := n.free[0]
	n.free = slices.Delete(n.free, 0, 1)
	return number, true
}

func (n *numberedRedis) giveBack(number int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.free = append(n.free, number)
}

func (n *numberedRedis) database(number int) string {
	u, err := url.Parse(n.URL())
	if err != nil {
		panic(fmt.Sprintf("devstack made an address that is none: %v", err))
	}
	u.Path = fmt.Sprintf("/%d", number)
	return u.String()
}

// flush empties a database, and reports whether it is fit for another test.
func flush(t testing.TB, address string) bool {
	t.Helper()
	ctx, cancel := bounded(t)
	defer cancel()
	options, err := redis.ParseURL(address)
	if err != nil {
		t.Errorf("read the address of the test's Redis: %v", err)
		return false
	}
	client := redis.NewClient(options)
	defer func() { _ = client.Close() }()
	if err := client.FlushDB(ctx).Err(); err != nil {
		t.Errorf("empty the test's Redis database: %v", err)
		return false
	}
	return true
}
