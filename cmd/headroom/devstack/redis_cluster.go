package devstack

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// lastSlot is the highest slot of a Redis Cluster.
const lastSlot = 16383

// errClusterForming is what pingCluster says while the cluster does not serve yet.
var errClusterForming = errors.New("the cluster does not serve its slots yet")

// pingCluster also gives a new server its slots, and is content once it serves them.
func (r *Redis) pingCluster(ctx context.Context) error {
	if err := r.ping(ctx); err != nil {
		return err
	}
	client := redis.NewClient(&redis.Options{
		Addr: address(r.port), Password: r.password, DisableIdentity: true, ContextTimeoutEnabled: true,
	})
	defer func() { _ = client.Close() }()
	info, err := client.ClusterInfo(ctx).Result()
	if err != nil {
		return fmt.Errorf("read cluster state: %w", err)
	}
	if strings.Contains(info, "cluster_slots_assigned:0\r") {
		if err := client.ClusterAddSlotsRange(ctx, 0, lastSlot).Err(); err != nil {
			return fmt.Errorf("assign cluster slots: %w", err)
		}
	}
	if !strings.Contains(info, "cluster_state:ok") {
		return errClusterForming
	}
	return nil
}
