package usage

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// ConsumeOnce is Consume in a transaction of its own, committed when it returns. Under a
// key it counts once however often it is called, by whatever process: a repeated call
// waits for the first one and gets its answer again, a refusal too. Another change
// under the key is *KeyReused.
//
// After ErrUnavailable nothing is counted. After an error that is neither that nor
// one of the typed ones the outcome is unknown: the same call with the same key finds
// it out.
//
// Changes of one feature of a workspace that wait at the same moment share a
// transaction, each with its own answer.
func (c *Counters) ConsumeOnce(ctx context.Context, once Once, change Change) (Balance, error) {
	if err := errors.Join(change.check(), once.check()); err != nil {
		return Balance{}, err
	}
	return c.wait(ctx, &ticket{once: once, change: change, done: make(chan struct{})})
}

// errStale ends a transaction of our own whose terms turned out to be old.
var errStale = errors.New("plan is old")

// onCurrentPlanOnce is onCurrentPlan for a transaction of our own. The plan is read
// outside of it, so that no connection is held while another one is waited for.
func (c *Counters) onCurrentPlanOnce(ctx context.Context, change Change, do func(pgx.Tx, terms) (reading, error)) error {
	err := c.onCurrentPlan(ctx, change.WorkspaceID, change.Feature, func(t terms) (reading, error) {
		var r reading
		err := c.transact(ctx, func(tx pgx.Tx) error {
			var err error
			if r, err = do(tx, t); err == nil && !r.fresh {
				err = errStale
			}
			return err
		})
		if errors.Is(err, errStale) {
			err = nil
		}
		return r, err
	})
	return unavailable(err)
}

// answer gives all tickets, which are of one feature of one workspace, their answers.
func (c *Counters) answer(ctx context.Context, tickets []*ticket) error {
	return c.onCurrentPlanOnce(ctx, tickets[0].change, func(tx pgx.Tx, t terms) (reading, error) {
		claims := make([]*claim, len(tickets))
		for i, ticket := range tickets {
			claims[i] = &claim{Once: ticket.once, workspace: t.workspace, fingerprint: fingerprint("consume", ticket.change)}
		}
		if err := claimAll(ctx, tx, claims); err != nil {
			return reading{}, err
		}
		var pending []*ticket
		for i, ticket := range tickets {
			if claims[i].mine() {
				pending = append(pending, ticket)
			}
		}
		r, err := c.consumeEach(ctx, tx, t, pending)
		if err != nil || !r.fresh {
			return r, err
		}
		var keyed []*claim
		for i, ticket := range tickets {
			if !claims[i].mine() {
				continue
			}
			if claims[i].answer = answerOf(ticket.balance, ticket.err); claims[i].Key != "" {
				keyed = append(keyed, claims[i])
			}
		}
		if err := storeAnswers(ctx, tx, keyed); err != nil {
			return reading{}, err
		}
		for i, ticket := range tickets {
			ticket.balance, ticket.err = claims[i].result()
		}
		return r, nil
	})
}

// ReleaseOnce is Release in a transaction of its own, with what ConsumeOnce says of keys
// and errors.
func (c *Counters) ReleaseOnce(ctx context.Context, once Once, change Change) (Balance, error) {
	if err := errors.Join(change.check(), once.check()); err != nil {
		return Balance{}, err
	}
	claims := []*claim{{Once: once, workspace: change.WorkspaceID, fingerprint: fingerprint("release", change)}}
	err := c.onCurrentPlanOnce(ctx, change, func(tx pgx.Tx, t terms) (reading, error) {
		if err := claimAll(ctx, tx, claims); err != nil {
			return reading{}, err
		}
		if !claims[0].mine() {
			return reading{fresh: true}, nil
		}
		balance, r, err := c.release(ctx, tx, t, change)
		if err != nil && !isAnswer(err) || err == nil && !r.fresh {
			return r, err
		}
		claims[0].answer = answerOf(balance, err)
		if once.Key == "" {
			return reading{fresh: true}, nil
		}
		return reading{fresh: true}, storeAnswers(ctx, tx, claims)
	})
	if err != nil {
		return Balance{}, err
	}
	return claims[0].result()
}
