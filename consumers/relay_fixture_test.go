package consumers_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/consumers"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/subscriptions"
)

// newsroom is an outbox, the streams that its news go to, and whoever relays them.
type newsroom struct {
	*world
	address string // of Postgres
	pool    *pgxpool.Pool
}

func newNewsroom(t testing.TB) *newsroom {
	t.Helper()
	return &newsroom{world: newWorld(t), address: schematest.PostgresURL(t), pool: schematest.Postgres(t)}
}

// dial is a connection as serve makes it.
func dial(address string) (*nats.Conn, jetstream.JetStream, error) {
	nc, err := nats.Connect(address, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.ReconnectBufSize(-1))
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(nc)
	return nc, js, err
}

// relay runs a relay, with connections of its own as another process would have,
// until it is stopped or the test ends.
func (n *newsroom) relay(set ...func(*consumers.RelayOptions)) (stop func()) {
	n.Helper()
	_, stop = n.relayOf(set...)
	return stop
}

func (n *newsroom) relayOf(set ...func(*consumers.RelayOptions)) (*consumers.Relay, func()) {
	n.Helper()
	nc, js, err := dial(schematest.NATSURL(n.TB))
	if err != nil {
		n.Fatal(err)
	}
	pool, err := pgxpool.New(context.Background(), n.address)
	if err != nil {
		n.Fatal(err)
	}
	o := consumers.RelayOptions{
		NATS: nc, JetStream: js, Topology: n.topology, Outbox: subscriptions.NewOutbox(pool), Log: schematest.Logger(n.TB),
	}
	for _, each := range set {
		each(&o)
	}
	r, err := consumers.NewRelay(o)
	if err != nil {
		n.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	stop := func() {
		cancel()
		if err := <-ended; err != nil {
			n.Errorf("relay ended with an error: %v", err)
		}
		ended <- nil
		nc.Close()
		pool.Close()
	}
	n.Cleanup(stop)
	return r, stop
}

// write commits a piece of news as all of Headroom does: with the workspace locked. Its
// plan_revision counts the workspace's news.
func write(ctx context.Context, pool *pgxpool.Pool, ws, kind string) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		var revision int64
		err := tx.QueryRow(ctx, `INSERT INTO workspaces (id) VALUES ($1)
			ON CONFLICT (id) DO UPDATE SET revision = workspaces.revision + 1 RETURNING revision`, ws).Scan(&revision)
		if err != nil {
			return err
		}
		return insert(ctx, tx, ws, kind, newsData(ws, kind, revision))
	})
}

func newsData(ws, kind string, revision int64) any {
	if kind == subscriptions.NewsInvalidated {
		return schemas.PlanInvalidated{WorkspaceID: ws, PlanRevision: revision, Reason: "test"}
	}
	start := time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC)
	return schemas.SubscriptionRenewed{
		WorkspaceID: ws, SubscriptionID: uuid.NewString(), Kind: "cycle", PlanKey: "pro", PlanRevision: revision,
		PeriodStart: start, PeriodEnd: start.AddDate(0, 1, 0),
	}
}

func insert(ctx context.Context, tx interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, ws, kind string, data any,
) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	body, err := json.Marshal(data)
	if err != nil {
		return err
	}
	var position int64
	return tx.QueryRow(ctx, `INSERT INTO outbox (id, workspace_id, subject_kind, body)
		VALUES ($1, $2, $3, $4::jsonb) RETURNING position`, id.String(), ws, kind, string(body)).Scan(&position)
}

// mustWrite commits news of a workspace, of alternating kinds.
func (n *newsroom) mustWrite(ws string, count int) {
	n.Helper()
	for i := range count {
		if err := write(context.Background(), n.pool, ws, kindOf(i)); err != nil {
			n.Fatal(err)
		}
	}
}

func kindOf(i int) string {
	if i%2 == 0 {
		return subscriptions.NewsInvalidated
	}
	return subscriptions.NewsRenewed
}

// waiting is how many news are not marked; -1 while Postgres is away.
func (n *newsroom) waiting() int {
	count := -1
	_ = n.pool.QueryRow(context.Background(), `SELECT count(*) FROM outbox WHERE published_at IS NULL`).Scan(&count)
	return count
}

func (n *newsroom) drained() {
	n.Helper()
	n.eventually("the outbox is drained", func() bool { return n.waiting() == 0 })
}

// heard is a message of one of the streams.
type heard struct {
	id, workspace string
	revision      int64
	stored        time.Time
}

func hear[T schemas.Data](n *newsroom, kind schemas.StreamKind, revision func(T) int64) []heard {
	n.Helper()
	n.eventually("NATS is connected", n.nats.IsConnected)
	var all []heard
	for _, m := range n.stored(kind) {
		e, err := schemas.Decode[T](m.Subject, m.Data)
		if err != nil {
			n.Fatal(err)
		}
		if e.ID != m.Header.Get(jetstream.MsgIDHeader) {
			n.Errorf("event %s has the message id %q", e.ID, m.Header.Get(jetstream.MsgIDHeader))
		}
		workspace := m.Subject[len(m.Subject)-len("ws000"):]
		all = append(all, heard{id: e.ID, workspace: workspace, revision: revision(e.Data), stored: m.Time})
	}
	return all
}

// expectAllOnce checks that subscribers see each row of the outbox as one message,
// and those of a workspace in its order, over both streams. Workspaces are named ws000.
func (n *newsroom) expectAllOnce(atLeast int) {
	n.Helper()
	all := append(
		hear(n, schemas.StreamPlans, func(d schemas.PlanInvalidated) int64 { return d.PlanRevision }),
		hear(n, schemas.StreamSubscriptions, func(d schemas.SubscriptionRenewed) int64 { return d.PlanRevision })...)
	slices.SortFunc(all, func(a, b heard) int {
		return cmp.Or(cmp.Compare(a.workspace, b.workspace), a.stored.Compare(b.stored))
	})
	rows, err := n.pool.Query(context.Background(), `SELECT id::text FROM outbox ORDER BY workspace_id, position`)
	if err != nil {
		n.Fatal(err)
	}
	want, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		n.Fatal(err)
	}
	if len(want) < atLeast {
		n.Fatalf("the outbox holds %d rows, the test wants %d at least", len(want), atLeast)
	}
	got := make([]string, len(all))
	for i, h := range all {
		got[i] = h.id
		if i > 0 && all[i-1].workspace == h.workspace && all[i-1].revision >= h.revision {
			n.Errorf("%s: revision %d is stored after %d", h.workspace, h.revision, all[i-1].revision)
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		n.Errorf("ids of the messages, by workspace and in the order stored (-want +got):\n%s", diff)
	}
}

// writers commit news of many workspaces at once, from several goroutines, until
// each has count. A commit that is refused is tried again; one whose answer is lost may be
// there twice, so the outbox is what to compare with.
func (n *newsroom) writers(ctx context.Context, workspaces, count int) error {
	const hands = 4
	done := make(chan error, hands)
	for hand := range hands {
		go func() {
			for i := range count {
				for ws := hand; ws < workspaces; ws += hands {
					if err := persist(ctx, n.pool, fmt.Sprintf("ws%03d", ws), kindOf(i)); err != nil {
						done <- err
						return
					}
				}
			}
			done <- nil
		}()
	}
	var errs []error
	for range hands {
		errs = append(errs, <-done)
	}
	return errors.Join(errs...)
}

func persist(ctx context.Context, pool *pgxpool.Pool, ws, kind string) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := write(ctx, pool, ws, kind)
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}
