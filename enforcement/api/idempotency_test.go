package api_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/enforcement"
	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/enforcement/usage"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

func (q request) keyed(key string) request {
	q.header = map[string]string{"Idempotency-Key": key}
	return q
}

// claimed are the routes whose keys are in Redis.
var claimed = []string{"admit", "complete", "check", "invalidate", "invalidate-2"}

func TestAKeyThatComesAgainWithAnotherRequestIsRefused(t *testing.T) {
	t.Parallel()
	others := map[string]string{
		"admit": `{"execution_id": "ex_2"}`, "complete": `{"outcome": "failed"}`, "check": `{"checks": [{"feature": "other"}]}`,
		"invalidate": `{"reason": "another"}`, "invalidate-2": `{"reason": "another"}`,
	}
	claims := &memory{}
	door := newDoor(t, willing(), func(o *api.Options) { o.Claims = claims })
	for _, name := range claimed {
		q := good[name].keyed("key-" + name)
		for range 2 {
			if w := q.ask(t, door); w.Code != good[name].status {
				t.Errorf("%s: status %d; body %s", name, w.Code, w.Body)
			}
		}
		spaced := q
		if q.body != "" {
			spaced.body = " " + strings.Replace(q.body, ":", " : ", 1)
		}
		if w := spaced.ask(t, door); w.Code != good[name].status {
			t.Errorf("%s, written in another way: status %d; body %s", name, w.Code, w.Body)
		}
		other := q
		other.body = others[name]
		if p := told(t, other.ask(t, door)); slugOf(p) != "idempotency-key-reused" || p["status"] != 422.0 {
			t.Errorf("%s: got %v", name, p)
		}
		elsewhere := q
		elsewhere.path = strings.Replace(q.path, "ws_1", "ws_2", 1)
		if w := elsewhere.ask(t, door); w.Code != good[name].status {
			t.Errorf("%s in another workspace: status %d; body %s", name, w.Code, w.Body)
		}
	}
	engine := admission.keyed("key-admit")
	engine.token, engine.body = executeToken, others["admit"]
	if w := engine.ask(t, door); w.Code != http.StatusCreated {
		t.Errorf("another token's key: status %d; body %s", w.Code, w.Body)
	}
	route := request{method: "POST", path: "/v1/workspaces/ws_1/invalidate"}.keyed("key-admit")
	if p := told(t, route.ask(t, door)); slugOf(p) != "idempotency-key-reused" {
		t.Errorf("the key of another route: got %v", p)
	}
}

func TestAnAdmissionWithAKeyIsTheSameEvent(t *testing.T) {
	t.Parallel()
	var events []string
	a := willing()
	a.admit = func(r enforcement.Request) (schemas.DecisionMade, error) {
		events = append(events, r.EventSource+" "+r.EventID)
		return allowed(r), nil
	}
	door := newDoor(t, a)
	for range 2 {
		admission.keyed("key-1").ask(t, door)
		admission.ask(t, door)
	}
	if events[0] != "/api/root key-1" || events[2] != events[0] || events[1] == events[3] {
		t.Errorf("events %q", events)
	}
}

func TestAKeyIsCheckedBeforeAnythingIsDecided(t *testing.T) {
	t.Parallel()
	var decided int
	a := willing()
	a.admit = func(r enforcement.Request) (schemas.DecisionMade, error) {
		decided++
		return allowed(r), nil
	}
	claims := &memory{fault: errors.New("redis is away")}
	door := newDoor(t, a, func(o *api.Options) { o.Claims = claims })
	if p := told(t, admission.keyed("key-1").ask(t, door)); slugOf(p) != "unavailable" || decided != 0 {
		t.Errorf("decided %d, got %v", decided, p)
	}
	if w := admission.ask(t, door); w.Code != http.StatusCreated {
		t.Errorf("without a key: status %d; body %s", w.Code, w.Body)
	}
}

func TestConsumeAndReleaseHandTheKeyOn(t *testing.T) {
	t.Parallel()
	var got []usage.Once
	a := willing()
	a.change = func(once usage.Once, c usage.Change) (usage.Balance, error) {
		got = append(got, once)
		if c.Quantity == 3 {
			return usage.Balance{}, &usage.KeyReused{Key: once.Key}
		}
		return usage.Balance{Limit: schemas.Unlimited}, nil
	}
	claims := &memory{fault: errors.New("no claim is made of them")}
	door := newDoor(t, a, func(o *api.Options) { o.Claims = claims })
	good["consume"].keyed("k1").ask(t, door)
	good["release"].keyed("k2").ask(t, door)
	good["consume"].ask(t, door)
	want := []usage.Once{{Scope: "root", Key: "k1"}, {Scope: "root", Key: "k2"}, {Scope: "root"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	q := good["consume"].keyed("k1")
	q.body = `{"quantity": 3}`
	if p := told(t, q.ask(t, door)); slugOf(p) != "idempotency-key-reused" {
		t.Errorf("got %v", p)
	}
}

func TestAWrongKeyIsRefused(t *testing.T) {
	t.Parallel()
	door := newDoor(t, willing())
	for name, g := range good {
		if g.method != http.MethodPost {
			continue
		}
		for _, key := range []string{"", " ", "a b", "ä", "a\x7f", strings.Repeat("k", 256)} {
			p := told(t, g.keyed(key).ask(t, door))
			if diff := cmp.Diff([]string{fault("Idempotency-Key", "must be 1 to 255 visible ASCII characters")}, faultsOf(p)); diff != "" {
				t.Errorf("%s %q (-want +got):\n%s", name, key, diff)
			}
		}
		r := g.keyed("a").make(t)
		r.Header.Add("Idempotency-Key", "b")
		if diff := cmp.Diff([]string{fault("Idempotency-Key", "must be sent once")}, faultsOf(told(t, recorded(door, r)))); diff != "" {
			t.Errorf("%s, two keys (-want +got):\n%s", name, diff)
		}
	}
	if w := admission.keyed(strings.Repeat("~", 255)).ask(t, door); w.Code != http.StatusCreated {
		t.Errorf("the longest key: status %d; body %s", w.Code, w.Body)
	}
}

func TestOneOfManyClaimsTheKey(t *testing.T) {
	t.Parallel()
	client := schematest.Redis(t)
	claims := api.NewRedisClaims(client, "headroom")
	const many = 32
	holders := make([]string, many)
	var wait sync.WaitGroup
	for i := range many {
		wait.Go(func() {
			holder, err := claims.Claim(t.Context(), api.Claim{
				Token: "a", Workspace: "ws_1", Key: "k", Fingerprint: strings.Repeat(string(rune('a'+i%16)), 64),
			})
			if err != nil {
				t.Error(err)
			}
			holders[i] = holder
		})
	}
	wait.Wait()
	for i, holder := range holders {
		if holder == "" || holder != holders[0] {
			t.Errorf("claim %d is told %q, the first %q", i, holder, holders[0])
		}
	}
	keys, err := client.Keys(t.Context(), "*").Result()
	if err != nil || len(keys) != 1 || !strings.HasPrefix(keys[0], "headroom:{ws_1}:k:") {
		t.Fatalf("keys %q, error %v", keys, err)
	}
	if life := client.PTTL(t.Context(), keys[0]).Val(); life <= 23*time.Hour || life > 24*time.Hour {
		t.Errorf("the key lives for %s", life)
	}
}

func TestAClaimIsOneTokensInOneWorkspace(t *testing.T) {
	t.Parallel()
	claims := api.NewRedisClaims(schematest.RedisCluster(t), "headroom")
	for i, c := range []api.Claim{
		{Token: "a", Workspace: "ws_1", Key: "k"},
		{Token: "b", Workspace: "ws_1", Key: "k"},
		{Token: "a", Workspace: "ws_2", Key: "k"},
		{Token: "a", Workspace: "ws_1", Key: "l"},
	} {
		c.Fingerprint = strings.Repeat(string(rune('a'+i)), 64)
		holder, err := claims.Claim(t.Context(), c)
		if err != nil || holder != c.Fingerprint {
			t.Errorf("claim %d: told %q, error %v", i, holder, err)
		}
	}
}

func TestAClaimWithoutAnAnswerOfRedisIsAnError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	holder, err := api.NewRedisClaims(schematest.Redis(t), "headroom").Claim(ctx, api.Claim{Token: "a", Workspace: "ws_1", Key: "k", Fingerprint: "f"})
	if err == nil || holder != "" {
		t.Errorf("told %q, error %v", holder, err)
	}
}

// hanging is Claims that answer when they are given up.
type hanging struct{}

// Claim is for api.Claims.
func (hanging) Claim(ctx context.Context, _ api.Claim) (string, error) {
	<-ctx.Done()
	return "", context.Cause(ctx)
}

func TestAKeyIsLookedUpForAFewSecondsWhileRedisHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		door := newDoor(t, willing(), func(o *api.Options) { o.Claims = hanging{} })
		q := admission.keyed("k")
		began := time.Now()
		if p := told(t, q.ask(t, door)); slugOf(p) != "unavailable" {
			t.Errorf("got %v", p)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}
