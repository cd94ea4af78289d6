package devstack

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/alicebob/miniredis/v2"
)

// StandIn takes the place of a Redis server on a machine without one. It serves one
// program on one machine and forgets everything; it has no append-only file.
type StandIn struct {
	server   *miniredis.Miniredis
	password string
}

// StartStandIn starts a stand-in on a free port of 127.0.0.1. What ends it is Stop.
func StartStandIn() (*StandIn, error) {
	s := &StandIn{server: miniredis.NewMiniRedis(), password: rand.Text()}
	s.server.RequireAuth(s.password)
	// Keys are to expire by the clock, as they do in Redis.
	s.server.ClockTTL(true)
	if err := s.server.StartAddr(loopback + ":0"); err != nil {
		return nil, fmt.Errorf("start the stand-in for Redis: %w", err)
	}
	return s, nil
}

// URL is a redis:// address of database 0 with the password.
func (s *StandIn) URL() string { return redisURL(s.server.Addr(), s.password) }

// Stop cuts every connection and forgets the data.
func (s *StandIn) Stop(context.Context) error {
	s.server.Close()
	return nil
}
