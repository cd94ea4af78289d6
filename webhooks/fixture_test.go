package webhooks_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stripe/stripe-go/v79/webhook"

	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/webhooks"
)

const (
	oldSecret = "whsec_the_old_one"
	newSecret = "whsec_the_new_one"
)

// noon is when deliveries arrive in these tests.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// journal is a log that a test reads.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(line)
}

// lines are the lines so far.
func (j *journal) lines(t testing.TB) []map[string]any {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	var lines []map[string]any
	for line := range strings.Lines(j.text.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fields)
	}
	return lines
}

// house is a door with a ledger behind it.
type house struct {
	door   *webhooks.Door
	ledger *webhooks.Ledger
	pool   *pgxpool.Pool
	log    *journal
}

func newHouse(t testing.TB, mode webhooks.Mode) house {
	t.Helper()
	return houseOn(t, schematest.Postgres(t), mode)
}

func houseOn(t testing.TB, pool *pgxpool.Pool, mode webhooks.Mode) house {
	t.Helper()
	ledger, err := webhooks.NewLedger(pool, mode)
	if err != nil {
		t.Fatal(err)
	}
	log := new(journal)
	door, err := webhooks.NewDoor(webhooks.DoorOptions{
		Secrets: []string{newSecret, oldSecret}, Ledger: ledger,
		Log: slog.New(slog.NewJSONHandler(log, nil)), Now: func() time.Time { return noon },
	})
	if err != nil {
		t.Fatal(err)
	}
	return house{door: door, ledger: ledger, pool: pool, log: log}
}

// sign is the hexadecimal v1 signature of a body.
func sign(body []byte, secret string, at time.Time) string {
	return hex.EncodeToString(webhook.ComputeSignature(at, body, secret))
}

func header(body []byte, secret string, at time.Time) string {
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), sign(body, secret, at))
}

func (h house) post(t testing.TB, body []byte, signature string) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/webhooks/stripe", bytes.NewReader(body))
	if signature != "" {
		request.Header.Set("Stripe-Signature", signature)
	}
	answer := httptest.NewRecorder()
	h.door.ServeHTTP(answer, request)
	return answer
}

// deliver posts a body as Stripe would and returns the state that it was answered with.
func (h house) deliver(t testing.TB, body string) string {
	t.Helper()
	answer := h.post(t, []byte(body), header([]byte(body), newSecret, noon))
	if answer.Code != http.StatusOK {
		t.Fatalf("answered %d %s, want 200", answer.Code, answer.Body)
	}
	var said struct{ State string }
	if err := json.Unmarshal(answer.Body.Bytes(), &said); err != nil {
		t.Fatalf("body of the answer: %v", err)
	}
	return said.State
}

// event is a body with an object of JSON inside.
func event(id, kind, object string) string {
	return fmt.Sprintf(`{"id":%q,"object":"event","api_version":"2024-06-20","created":1795000000,"livemode":true,
		"type":%q,"request":{"id":null,"idempotency_key":null},"data":{"object":%s}}`, id, kind, object)
}

const aSubscription = `{"id":"sub_acme","object":"subscription","customer":"cus_acme"}`

func query[T any](t testing.TB, pool *pgxpool.Pool, sql string, args ...any) T {
	t.Helper()
	var value T
	if err := pool.QueryRow(context.WithoutCancel(t.Context()), sql, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

func generation(t testing.TB, pool *pgxpool.Pool, subscription string) int64 {
	t.Helper()
	return query[int64](t, pool, `SELECT coalesce(sum(generation), 0)::bigint FROM stripe_sync_requests WHERE subscription_id = $1`, subscription)
}
