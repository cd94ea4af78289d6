package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Store reads and writes the ledger's tables.
type Store struct {
	pool *pgxpool.Pool
}

// New is a store over the pool, which the caller closes.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool} }

// Source is the name of a stream's position. It carries when the stream was
// created: a stream that was deleted and made anew starts at 1 again, and must not be
// taken for the one whose position is far beyond.
func Source(stream string, created time.Time) string {
	return stream + "@" + created.UTC().Format("2006-01-02T15:04:05.000000000Z")
}

// Position is the last sequence of the source that is folded, 0 for none. It
// makes the source known, so that Fold can move it.
func (s *Store) Position(ctx context.Context, source string) (uint64, error) {
	rows, err := s.pool.Query(ctx, `
		insert into ledger_applied (stream, partition, sequence, updated_at)
		values (@source, 0, 0, now())
		on conflict (stream, partition) do update set updated_at = ledger_applied.updated_at
		returning sequence`,
		pgx.NamedArgs{"source": source})
	if err != nil {
		return 0, fmt.Errorf("read position of %s: %w", source, err)
	}
	sequence, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
	if err != nil {
		return 0, fmt.Errorf("read position of %s: %w", source, err)
	}
	return uint64(sequence), nil
}

// Rewind sets a position back, for a stream that lost its end (a server that
// acknowledged before it wrote, and lost power): what is written there next is
// new and would else be skipped. It returns ErrMoved when the position is not at `from`.
func (s *Store) Rewind(ctx context.Context, source string, from, to uint64) error {
	if to > from {
		return fmt.Errorf("rewind %s: %d lies beyond %d", source, to, from)
	}
	return s.move(ctx, s.pool, Span{Source: source, After: from, Through: to})
}

// Applied is the last sequence of a stream that is folded, 0 for none; of several
// streams of that name, one after the other, the newest's.
func (s *Store) Applied(ctx context.Context, stream string) (uint64, error) {
	rows, err := s.pool.Query(ctx, `
		select sequence from ledger_applied
		where stream = @stream or starts_with(stream, @stream || '@')
		order by stream desc limit 1`,
		pgx.NamedArgs{"stream": stream})
	if err != nil {
		return 0, fmt.Errorf("read what is applied of %s: %w", stream, err)
	}
	sequence, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read what is applied of %s: %w", stream, err)
	}
	return uint64(sequence), nil
}

// Reached is the last sequence of the source that is folded, 0 for none. Unlike Position
// it changes nothing.
func (s *Store) Reached(ctx context.Context, source string) (uint64, error) {
	rows, err := s.pool.Query(ctx, `select coalesce(max(sequence), 0) from ledger_applied where stream = @source and partition = 0`,
		pgx.NamedArgs{"source": source})
	if err != nil {
		return 0, fmt.Errorf("read what is reached of %s: %w", source, err)
	}
	sequence, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
	if err != nil {
		return 0, fmt.Errorf("read what is reached of %s: %w", source, err)
	}
	return uint64(sequence), nil
}

// Began reports whether anything of a stream was ever folded, or of one before it of
// the same name.
func (s *Store) Began(ctx context.Context, stream string) (bool, error) {
	rows, err := s.pool.Query(ctx, `
		select exists (select from ledger_applied
			where (stream = @stream or starts_with(stream, @stream || '@')) and sequence > 0)`,
		pgx.NamedArgs{"stream": stream})
	if err != nil {
		return false, fmt.Errorf("read whether %s was ever folded: %w", stream, err)
	}
	began, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
	if err != nil {
		return false, fmt.Errorf("read whether %s was ever folded: %w", stream, err)
	}
	return began, nil
}
