package webhooks_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/headroomhq/headroom/schemas/schematest"
	"github.com/headroomhq/headroom/webhooks"
)

// ofSize is an event whose body has exactly so many bytes.
func ofSize(size int) []byte {
	body := event("evt_large", "customer.subscription.updated", `{"id":"sub_acme","object":"subscription","pad":"PAD"}`)
	return []byte(strings.Replace(body, "PAD", strings.Repeat("x", size-len(body)+len("PAD")), 1))
}

func TestABodyMayHaveAMebibyte(t *testing.T) {
	t.Parallel()
	h := newHouse(t, webhooks.ModeLive)
	for _, c := range []struct{ size, want int }{
		{webhooks.MaxBody, http.StatusOK}, {webhooks.MaxBody + 1, http.StatusRequestEntityTooLarge},
	} {
		body := ofSize(c.size)
		if len(body) != c.size {
			t.Fatalf("the body has %d bytes, want %d", len(body), c.size)
		}
		if answer := h.post(t, body, header(body, newSecret, noon)); answer.Code != c.want {
			t.Errorf("%d bytes: answered %d, want %d", c.size, answer.Code, c.want)
		}
	}
	if kept := query[int](t, h.pool, `SELECT length(body) FROM stripe_events`); kept != webhooks.MaxBody {
		t.Errorf("kept %d bytes of the body", kept)
	}
}

func TestABodyIsKeptByteByByte(t *testing.T) {
	t.Parallel()
	h := newHouse(t, webhooks.ModeLive)
	body := strings.Replace(event("evt_1", "customer.subscription.updated", aSubscription), "cus_acme", "\\u0000 \xff é", 1)
	h.deliver(t, body)
	stored, err := h.ledger.Event(t.Context(), "evt_1")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(stored[0].Body, []byte(body)) {
		t.Errorf("kept %q, want %q", stored[0].Body, body)
	}
}

func TestWhatIsNoDeliveryIsRefused(t *testing.T) {
	t.Parallel()
	h := newHouse(t, webhooks.ModeLive)
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		answer := httptest.NewRecorder()
		h.door.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), method, "/webhooks/stripe", nil))
		if answer.Code != http.StatusMethodNotAllowed || answer.Header().Get("Allow") != http.MethodPost {
			t.Errorf("%s: answered %d, Allow %q", method, answer.Code, answer.Header().Get("Allow"))
		}
	}
	cut := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/webhooks/stripe", io.MultiReader(strings.NewReader("{"), broken{}))
	answer := httptest.NewRecorder()
	h.door.ServeHTTP(answer, cut)
	if answer.Code != http.StatusBadRequest || answer.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("a body that breaks off: answered %d as %s", answer.Code, answer.Header().Get("Content-Type"))
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

func TestEachDeliveryIsOneLine(t *testing.T) {
	t.Parallel()
	h := newHouse(t, webhooks.ModeLive)
	body := event("evt_1", "customer.subscription.updated", aSubscription)
	h.deliver(t, body)
	h.deliver(t, body)
	h.deliver(t, "what?")
	h.post(t, []byte(body), "t=1,v1=00")
	h.post(t, make([]byte, webhooks.MaxBody+1), "")
	lines := h.log.lines(t)
	if len(lines) != 5 {
		t.Fatalf("%d lines for five deliveries", len(lines))
	}
	type line struct {
		level, state, id string
		status           float64
		duplicate        any
	}
	for i, want := range []line{
		{"INFO", "received", "evt_1", 200, false},
		{"INFO", "received", "evt_1", 200, true},
		{"WARN", "parked", fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("what?"))), 200, false},
		{"WARN", "", "", 400, nil},
		{"WARN", "", "", 413, nil},
	} {
		got := line{level: lines[i]["level"].(string), status: lines[i]["status"].(float64), duplicate: lines[i]["duplicate"]}
		got.state, _ = lines[i]["state"].(string)
		got.id, _ = lines[i]["event_id"].(string)
		if got != want {
			t.Errorf("line %d is %+v, want %+v", i, got, want)
		}
		if lines[i]["msg"] != "stripe delivery answered" {
			t.Errorf("line %d says %q", i, lines[i]["msg"])
		}
		for _, secret := range []string{newSecret, oldSecret} {
			if text, _ := json.Marshal(lines[i]); strings.Contains(string(text), secret) {
				t.Errorf("line %d tells a secret", i)
			}
		}
	}
}

func TestWithoutPostgresTheSenderIsToldToComeAgain(t *testing.T) {
	t.Parallel()
	server := schematest.PostgresServer(t)
	pool, err := pgxpool.New(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	h := houseOn(t, pool, webhooks.ModeLive)
	body := []byte(event("evt_1", "customer.subscription.updated", aSubscription))
	h.deliver(t, string(body))

	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	// A backend outlives the killed server by a moment and would still commit.
	pool.Reset()
	h.wantUnavailable(t, body)
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if state := h.deliver(t, string(body)); state != webhooks.StateReceived {
		t.Errorf("after the restart it is %s", state)
	}
}

func TestALostConnectionIsNotTheSendersBusiness(t *testing.T) {
	t.Parallel()
	h := newHouse(t, webhooks.ModeLive)
	h.deliver(t, event("evt_1", "customer.subscription.updated", aSubscription))
	admin, err := pgx.Connect(t.Context(), schematest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(context.WithoutCancel(t.Context())) }()
	const end = `SELECT count(*) FROM (SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend') ended`
	var ended int
	if err := admin.QueryRow(t.Context(), end).Scan(&ended); err != nil || ended == 0 {
		t.Fatalf("ended %d connections (%v)", ended, err)
	}
	if state := h.deliver(t, event("evt_2", "customer.subscription.updated", aSubscription)); state != webhooks.StateReceived {
		t.Errorf("it is %s", state)
	}
}

func TestAPostgresThatHangsIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	h := newHouse(t, webhooks.ModeLive)
	holder, err := h.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := holder.Exec(t.Context(), `LOCK TABLE stripe_events`); err != nil {
		t.Fatal(err)
	}
	h.wantUnavailable(t, []byte(event("evt_1", "customer.subscription.updated", aSubscription)))
}

func (h house) wantUnavailable(t *testing.T, body []byte) {
	t.Helper()
	began := time.Now()
	answer := h.post(t, body, header(body, newSecret, noon))
	if took := time.Since(began); took > webhooks.StorePatience+time.Second {
		t.Errorf("answered after %s", took)
	}
	if answer.Code != http.StatusServiceUnavailable || answer.Header().Get("Retry-After") == "" ||
		answer.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("answered %d %v, want 503 with Retry-After", answer.Code, answer.Header())
	}
	var problem struct {
		Type, Title, Detail string
		Status              int
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &problem); err != nil || problem.Status != 503 || problem.Title == "" || problem.Detail == "" {
		t.Errorf("problem is %+v (%v)", problem, err)
	}
	lines := h.log.lines(t)
	if last := lines[len(lines)-1]; last["level"] != "ERROR" || last["error"] == nil {
		t.Errorf("the log says %v", last)
	}
}

func TestAModeThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := webhooks.NewLedger(nil, "both"); err == nil || !strings.Contains(err.Error(), "HEADROOM_STRIPE_MODE") {
		t.Errorf("mode both: %v", err)
	}
}

// Who sends a body that never ends is not waited for, and it needs no secret to try.
func TestABodyThatDoesNotArriveIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	h := newHouse(t, webhooks.ModeLive)
	server := httptest.NewServer(h.door)
	defer server.Close()
	slow, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slow.Close() }()
	if _, err := io.WriteString(slow, "POST /webhooks/stripe HTTP/1.1\r\nHost: headroom\r\nContent-Length: 1000\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	if err := slow.SetReadDeadline(time.Now().Add(settling)); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(slow), nil)
	if err != nil {
		t.Fatalf("no answer came: %v", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusBadRequest {
		t.Errorf("answered %s", answer.Status)
	}
}
