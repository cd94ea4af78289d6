package usage_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// model is what the counters of one feature must do, without a database.
type model struct {
	limit, loose int64
	resources    []thing
}

type thing struct {
	id        string
	quantity  int64
	rank, age int
}

func (m *model) used() int64 {
	n := m.loose
	for _, r := range m.resources {
		n += r.quantity
	}
	return n
}

func (m *model) find(id string) *thing {
	for i := range m.resources {
		if m.resources[i].id == id {
			return &m.resources[i]
		}
	}
	return nil
}

func (m *model) locked(id string) bool {
	slices.SortFunc(m.resources, func(a, b thing) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.age, b.age), strings.Compare(a.id, b.id))
	})
	n := m.loose
	for _, r := range m.resources {
		if n += r.quantity; r.id == id {
			return n > m.limit
		}
	}
	return false
}

const notChosen = 1 << 30

// consume is "", "quota" or "locked".
func (m *model) consume(id string, quantity int64, age int) string {
	switch r := m.find(id); {
	case m.used()+quantity > m.limit && id != "" && m.locked(id):
		return "locked"
	case m.used()+quantity > m.limit:
		return "quota"
	case id == "":
		m.loose += quantity
	case r != nil:
		r.quantity += quantity
	case quantity > 0:
		m.resources = append(m.resources, thing{id: id, quantity: quantity, rank: notChosen, age: age})
	}
	return ""
}

func (m *model) release(id string, quantity int64) {
	r := m.find(id)
	switch {
	case id == "":
		m.loose -= min(quantity, m.loose)
	case r != nil:
		r.quantity -= min(quantity, r.quantity)
	}
	m.resources = slices.DeleteFunc(m.resources, func(r thing) bool { return r.quantity == 0 })
}

// keep is whether all of them are there.
func (m *model) keep(ids []string) bool {
	for _, id := range ids {
		if m.find(id) == nil {
			return false
		}
	}
	for i := range m.resources {
		m.resources[i].rank = notChosen
		if place := slices.Index(ids, m.resources[i].id); place >= 0 {
			m.resources[i].rank = place
		}
	}
	return true
}

// refusalOf is the model's word for an error.
func refusalOf(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.As(err, new(*usage.QuotaExceeded)):
		return "quota"
	case errors.As(err, new(*usage.ResourceLocked)):
		return "locked"
	default:
		return err.Error()
	}
}

// play takes three bytes for a step: what to do, to which resource, and how much.
func play(t *testing.T, h *house, plans *fixed, script []byte) {
	if _, err := h.pool.Exec(t.Context(), `delete from usage_counters; delete from usage_resources`); err != nil {
		t.Fatal(err)
	}
	m := &model{}
	limit := func(n int64) {
		m.limit = n
		plans.info.Snapshot.Features = plan("", features{"projects": n}).Features
	}
	limit(8)
	ids := []string{"", "a", "B", "c", "d-1", "d_1"}
	for step := 0; len(script) >= 3; step++ {
		act, id, quantity := script[0]%8, ids[int(script[1])%len(ids)], int64(script[2]%6)
		age := int(script[2] >> 4)
		script = script[3:]
		what := fmt.Sprintf("step %d: act %d on %q with %d", step, act, id, quantity)
		c := usage.Change{WorkspaceID: "w", Feature: "projects", ResourceID: id, Quantity: quantity, CreatedAt: dayOne.Add(time.Duration(age) * time.Hour)}
		switch act {
		case 0, 1:
			_, err := h.consume(t, c)
			if got, want := refusalOf(err), m.consume(id, quantity, age); got != want {
				t.Fatalf("%s: consume says %q, want %q", what, got, want)
			}
		case 2:
			if got, want := refusalOf(h.once(t, "", c).Err), m.consume(id, quantity, age); got != want {
				t.Fatalf("%s: once says %q, want %q", what, got, want)
			}
		case 3:
			err := h.in(t, func(tx pgx.Tx) error { _, err := h.ConsumeAll(t.Context(), tx, []usage.Change{c}); return err })
			if got, want := refusalOf(err), m.consume(id, quantity, age); got != want {
				t.Fatalf("%s: all says %q, want %q", what, got, want)
			}
		case 4, 5:
			m.release(id, quantity)
			if balance := h.release(t, c); balance.Used != m.used() {
				t.Fatalf("%s: %d used after a release, want %d", what, balance.Used, m.used())
			}
		case 6:
			chosen := slices.Compact([]string{ids[1+int(quantity)%5], ids[1+age%5]})
			if got, want := h.Keep(t.Context(), "w", "projects", chosen) == nil, m.keep(chosen); got != want {
				t.Fatalf("%s: kept %v: %v, want %v", what, chosen, got, want)
			}
		case 7:
			limit(quantity * 3)
		}
		same(t, h, m, what)
	}
}

// same holds the counter and every resource against the model.
func same(t *testing.T, h *house, m *model, what string) {
	page, err := h.Resources(t.Context(), usage.ResourceQuery{WorkspaceID: "w", Feature: "projects"})
	if err != nil {
		t.Fatal(err)
	}
	m.locked("") // puts them into order
	got := fmt.Sprintf("%d used, %d of nobody:", page.Used, page.Loose)
	for _, r := range page.Resources {
		got += fmt.Sprintf(" %s=%d locked=%v", r.ID, r.Quantity, r.Locked)
	}
	want := fmt.Sprintf("%d used, %d of nobody:", m.used(), m.loose)
	for _, r := range m.resources {
		want += fmt.Sprintf(" %s=%d locked=%v", r.id, r.quantity, m.locked(r.id))
	}
	if got != want {
		t.Fatalf("%s:\n got %s\nwant %s", what, got, want)
	}
}

func FuzzCountersDoAsTheModel(f *testing.F) {
	f.Add([]byte{0, 1, 3, 0, 2, 4, 7, 0, 1, 0, 2, 1, 6, 0, 1, 4, 1, 2})
	f.Add([]byte{1, 0, 2, 1, 3, 0x12, 3, 4, 0x21, 7, 0, 0, 2, 3, 1, 5, 0, 5, 6, 0, 0x33, 7, 0, 2, 0, 5, 1})
	f.Add([]byte{0, 1, 1, 0, 2, 1, 0, 3, 1, 0, 4, 1, 0, 5, 1, 7, 0, 1, 6, 1, 0x41, 4, 2, 1, 5, 3, 5, 2, 4, 1})
	h, plans := fixedOn(f, schematest.Postgres(f), nil)
	f.Fuzz(func(t *testing.T, script []byte) {
		play(t, h, plans, script[:min(len(script), 60)])
	})
}

// The fuzzer's engine runs in `make fuzz`; these are some hundred steps in each test run.
func TestCountersDoAsTheModel(t *testing.T) {
	t.Parallel()
	h, plans := fixedOn(t, schematest.Postgres(t), nil)
	seed := uint32(1)
	for range 30 {
		script := make([]byte, 60)
		for i := range script {
			seed = seed*1664525 + 1013904223
			script[i] = byte(seed >> 24)
		}
		play(t, h, plans, script)
	}
}
