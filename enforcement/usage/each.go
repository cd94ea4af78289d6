package usage

import (
	"context"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"
)

// consumeEach decides each of the changes by itself, in their order, and writes what is
// allowed at once. It tries all of them first, which is the rule, and then those for which
// the count that was seen leaves room.
func (c *Counters) consumeEach(ctx context.Context, tx pgx.Tx, t terms, pending []*ticket) (reading, error) {
	if len(pending) == 0 {
		return reading{fresh: true}, nil
	}
	allowed := sound(t, pending)
	for range 2 * raceAttempts {
		a := together(allowed)
		o, err := c.add(ctx, tx, t, a)
		switch {
		case err != nil || !o.Fresh:
			return o.reading(), err
		case o.Written != nil:
			t.settle(allowed, *o.Written-a.quantity)
			return o.reading(), c.tell(ctx, tx, o.reached(t))
		case a.quantity > 0 && o.Seen <= t.room(a.quantity):
			continue // overtaken: the row is locked now
		}
		if allowed, err = c.decide(ctx, tx, t, turn{sound(t, pending), o.Seen}); err != nil {
			return reading{}, err
		}
		if together(allowed).quantity == 0 {
			return o.reading(), nil
		}
	}
	return reading{}, fmt.Errorf("%w: %s of workspace %s changes faster than it is read", ErrUnavailable, t.feature, t.workspace)
}

// sound refuses those that no count can allow, and returns the others.
func sound(t terms, pending []*ticket) []*ticket {
	var others []*ticket
	for _, p := range pending {
		if p.err = t.resourceFault(p.change); p.err == nil {
			others = append(others, p)
		}
	}
	return others
}

// together is what the changes add. Where their sum is more than can be counted it is
// nothing, and the count is only looked at.
func together(allowed []*ticket) addition {
	var a addition
	places := make(map[string]int)
	for _, t := range allowed {
		q := t.change.Quantity
		if q > math.MaxInt64-a.quantity {
			return addition{}
		}
		a.quantity += q
		id := t.change.ResourceID
		if id == "" || q == 0 {
			continue
		}
		if i, met := places[id]; met {
			a.resources[i].quantity += q
			continue
		}
		places[id] = len(a.resources)
		a.resources = append(a.resources, registration{id, q, t.change.createdAt()})
	}
	return a
}

// settle gives the changes that were written their balances, one after the other.
func (t terms) settle(allowed []*ticket, used int64) {
	for _, a := range allowed {
		used += a.change.Quantity
		a.balance, a.err = t.balance(used), nil
	}
}

// turn is who is to be decided on at a count.
type turn struct {
	pending []*ticket
	used    int64
}

// decide finds who fits when one goes after the other, and refuses the rest: a small
// change may fit after a large one did not.
func (c *Counters) decide(ctx context.Context, tx pgx.Tx, t terms, at turn) ([]*ticket, error) {
	locked, err := c.lockedAmong(ctx, tx, t, at)
	if err != nil {
		return nil, err
	}
	var fits []*ticket
	used := at.used
	for _, p := range at.pending {
		if used > t.room(p.change.Quantity) {
			p.balance, p.err = Balance{}, t.refusal(p.change, finding{used, locked[p.change.ResourceID]})
			continue
		}
		used += p.change.Quantity
		p.balance, p.err = t.balance(used), nil
		fits = append(fits, p)
	}
	return fits, nil
}

// lockedAmong are the locked ones of the resources that are asked for: none
// while no more is used than allowed.
func (c *Counters) lockedAmong(ctx context.Context, tx pgx.Tx, t terms, at turn) (map[string]bool, error) {
	locked := make(map[string]bool)
	if !t.limit.Exceeded(at.used) {
		return locked, nil
	}
	var all []terms
	var changes []Change
	for _, p := range at.pending {
		if p.change.ResourceID != "" {
			all, changes = append(all, t), append(changes, p.change)
		}
	}
	if len(changes) == 0 {
		return locked, nil
	}
	seen, err := c.look(ctx, tx, all, changes)
	for i, s := range seen {
		locked[changes[i].ResourceID] = s.Locked
	}
	return locked, err
}
