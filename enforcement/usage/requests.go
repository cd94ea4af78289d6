package usage

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// fingerprint tells a repeated request from another one. No field can run into the
// next: a line break is in none of them.
func fingerprint(act string, c Change) []byte {
	text := fmt.Sprintf("%s\n%s\n%s\n%d\n%s\n", act, c.WorkspaceID, c.Feature, c.Quantity, c.ResourceID)
	if at := c.createdAt(); at != nil {
		text += at.Format(time.RFC3339Nano)
	}
	hash := sha256.Sum256([]byte(text))
	return hash[:]
}

// answer is what a request got: one field is set. Its JSON is kept for a day.
type answer struct {
	Balance *Balance         `json:"balance,omitempty"`
	Quota   *QuotaExceeded   `json:"quota_exceeded,omitempty"`
	Policy  *PolicyViolation `json:"policy_violation,omitempty"`
	Locked  *ResourceLocked  `json:"resource_locked,omitempty"`
	Invalid *InvalidArgument `json:"invalid_argument,omitempty"`
}

// answerOf is the answer of a change; the error is nil or one that isAnswer.
func answerOf(balance Balance, err error) *answer {
	a := &answer{}
	switch {
	case err == nil:
		a.Balance = &balance
	case errors.As(err, &a.Quota), errors.As(err, &a.Policy), errors.As(err, &a.Locked), errors.As(err, &a.Invalid):
	}
	return a
}

// isAnswer reports whether an error answers the request, and would do so again.
func isAnswer(err error) bool {
	a := answerOf(Balance{}, err)
	return *a != answer{} || errors.As(err, new(*KeyReused))
}

func (a answer) result() (Balance, error) {
	switch {
	case a.Balance != nil:
		return *a.Balance, nil
	case a.Quota != nil:
		return Balance{}, a.Quota
	case a.Policy != nil:
		return Balance{}, a.Policy
	case a.Locked != nil:
		return Balance{}, a.Locked
	case a.Invalid != nil:
		return Balance{}, a.Invalid
	default:
		return Balance{}, errors.New("the stored answer is of a kind that this version does not know")
	}
}

// claim is a request that asks for its key.
type claim struct {
	Once
	workspace   string
	fingerprint []byte
	// answer is nil until it is known.
	answer *answer
	// same is the claim of the same transaction that has the key.
	same *claim
	// reused is that another request has the key.
	reused bool
}

// mine reports whether the request is to be answered here and now.
func (c *claim) mine() bool { return c.answer == nil && c.same == nil && !c.reused }

func (c *claim) result() (Balance, error) {
	switch {
	case c.reused:
		return Balance{}, &KeyReused{Key: c.Key}
	case c.same != nil:
		return c.same.result()
	default:
		return c.answer.result()
	}
}

// claimAll takes the keys of those that have one. It waits for transactions that hold one
// of them; what those have answered is then the answer. Keys are taken in one order, and
// before any counter, so that nobody waits in a circle.
func claimAll(ctx context.Context, tx pgx.Tx, all []*claim) error {
	waiting := make(map[Once][]*claim)
	var keyed []*claim
	for _, c := range all {
		c.answer, c.same, c.reused = nil, nil, false
		if c.Key == "" {
			continue
		}
		if waiting[c.Once] == nil {
			keyed = append(keyed, c)
		}
		waiting[c.Once] = append(waiting[c.Once], c)
	}
	if len(keyed) == 0 {
		return nil
	}
	taken, err := takeKeys(ctx, tx, keyed)
	if err != nil {
		return fmt.Errorf("take idempotency keys: %w", err)
	}
	for _, once := range taken {
		owner := waiting[once][0]
		for _, c := range waiting[once][1:] {
			c.same, c.reused = owner, string(owner.fingerprint) != string(c.fingerprint)
		}
		delete(waiting, once)
	}
	if len(waiting) == 0 {
		return nil
	}
	return readAnswers(ctx, tx, waiting)
}

func takeKeys(ctx context.Context, tx pgx.Tx, keyed []*claim) ([]Once, error) {
	rows, err := tx.Query(ctx, `
		INSERT INTO usage_requests (scope, workspace_id, key, fingerprint)
		SELECT scope, @workspace::text, key, fingerprint
		FROM unnest(@scopes::text[], @keys::text[], @fingerprints::bytea[]) AS t (scope, key, fingerprint)
		ORDER BY scope COLLATE "C", key COLLATE "C"
		ON CONFLICT DO NOTHING RETURNING scope, key`, keyArgs(keyed))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Once])
}

func keyArgs(keyed []*claim) pgx.NamedArgs {
	return pgx.NamedArgs{
		"workspace":    keyed[0].workspace,
		"scopes":       column(keyed, func(c *claim) string { return c.Scope }),
		"keys":         column(keyed, func(c *claim) string { return c.Key }),
		"fingerprints": column(keyed, func(c *claim) []byte { return c.fingerprint }),
	}
}

// stored is a row of usage_requests.
type stored struct {
	Scope, Key  string
	Fingerprint []byte
	Answer      []byte
}

// readAnswers looks in a later snapshot than the one in which the keys were found taken.
// Each claim is compared with the request that has the key, and not with another that
// happens to ask at the same moment.
func readAnswers(ctx context.Context, tx pgx.Tx, waiting map[Once][]*claim) error {
	keyed := make([]*claim, 0, len(waiting))
	for _, claims := range waiting {
		keyed = append(keyed, claims[0])
	}
	rows, err := tx.Query(ctx, `
		SELECT r.scope, r.key, r.fingerprint, r.answer
		FROM unnest(@scopes::text[], @keys::text[]) AS t (scope, key)
		JOIN usage_requests r ON r.scope = t.scope AND r.workspace_id = @workspace::text AND r.key = t.key`, keyArgs(keyed))
	if err != nil {
		return fmt.Errorf("read stored answers: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[stored])
	if err != nil {
		return fmt.Errorf("read stored answers: %w", err)
	}
	for _, s := range found {
		once, known := Once{s.Scope, s.Key}, &answer{}
		if err := json.Unmarshal(s.Answer, known); err != nil {
			return fmt.Errorf("read the stored answer of key %q: %w", s.Key, err)
		}
		for _, c := range waiting[once] {
			if c.reused = string(s.Fingerprint) != string(c.fingerprint); !c.reused {
				c.answer = known
			}
		}
		delete(waiting, once)
	}
	if len(waiting) > 0 {
		return fmt.Errorf("%w: a key was forgotten while it was looked for", ErrUnavailable)
	}
	return nil
}

// storeAnswers keeps what those got that have a key and were answered here.
func storeAnswers(ctx context.Context, tx pgx.Tx, answered []*claim) error {
	if len(answered) == 0 {
		return nil
	}
	bodies := make([]string, len(answered))
	for i, c := range answered {
		body, err := json.Marshal(c.answer)
		if err != nil {
			return fmt.Errorf("encode the answer of key %q: %w", c.Key, err)
		}
		bodies[i] = string(body)
	}
	args := keyArgs(answered)
	args["answers"] = bodies
	_, err := tx.Exec(ctx, `
		UPDATE usage_requests r SET answer = t.answer::jsonb
		FROM unnest(@scopes::text[], @keys::text[], @answers::text[]) AS t (scope, key, answer)
		WHERE r.scope = t.scope AND r.workspace_id = @workspace::text AND r.key = t.key`, args)
	if err != nil {
		return fmt.Errorf("store answers: %w", err)
	}
	return nil
}
