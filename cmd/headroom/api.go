package main

import (
	"fmt"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/enforcement/client"
	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/subscriptions"
)

// decider is what decides and what it decides by, shared by the consumers and the doors.
type decider struct {
	store    *subscriptions.Store
	plans    *client.Plans
	book     *ledger.Store
	enforcer *enforcement.Enforcer
}

// openAPI makes the HTTP API of what the doors answer from, and opens its door.
func (s *service) openAPI(d decider, doors *doors) error {
	tokens, err := s.config.tokens()
	if err != nil {
		return err
	}
	handler, err := api.NewHTTP(api.Options{
		Executions: doors.executions, Reader: doors.reader, Counters: doors.counters, Invalidator: d.store,
		Claims: api.NewRedisClaims(s.redis, s.config.RedisPrefix), Tokens: tokens, Log: s.log,
	})
	if err != nil {
		return fmt.Errorf("make the API: %w", err)
	}
	s.api.open(handler)
	return nil
}
