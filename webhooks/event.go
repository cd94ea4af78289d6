package webhooks

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Mode is which of Stripe's two worlds an installation listens to.
type Mode string

// The modes. An event of the other world is stored and ignored.
const (
	ModeLive Mode = "live"
	ModeTest Mode = "test"
	ModeAny  Mode = "any"
)

// check reports a mode that is none.
func (m Mode) check() error {
	if !slices.Contains([]Mode{ModeLive, ModeTest, ModeAny}, m) {
		return fmt.Errorf("HEADROOM_STRIPE_MODE %q: must be live, test or any", string(m))
	}
	return nil
}

// accepts reports whether objects of the world are followed.
func (m Mode) accepts(livemode bool) bool {
	return m == ModeAny || (m == ModeLive) == livemode
}

// The states of an event.
const (
	// StateReceived waits for the look-up that it asked for.
	StateReceived = "received"
	StateDone     = "done"
	// StateIgnored concerns nothing that is followed.
	StateIgnored = "ignored"
	// StateUnmapped waits until it is known whose subscription it is.
	StateUnmapped = "unmapped"
	// StateParked cannot be understood: a person has to look at it.
	StateParked = "parked"
	// StateDead was tried and given up.
	StateDead = "dead"
)

// States are all states of an event, from the first that it is in.
func States() []string {
	return []string{StateReceived, StateDone, StateIgnored, StateUnmapped, StateParked, StateDead}
}

const (
	// longestID bounds what Postgres indexes; Stripe's own ids stay below 255 bytes.
	longestID   = 255
	longestText = 200
)

// envelope is what is read of an event when it arrives: enough to store it and to
// know what to look up, not what it says.
type envelope struct {
	id, account, kind, apiVersion string
	// livemode is nil where the body does not say.
	livemode   *bool
	created    *time.Time
	objectKind string
	objectID   string
	customerID string
	// subscriptions are those to look up, sorted, each once.
	subscriptions []string
	// state is received, ignored or parked, with the reason of the latter two.
	state, reason string
}

// sniff reads any body whatsoever. What cannot be read is parked, under its hash
// where it has no id to go by.
func sniff(body []byte, mode Mode) envelope {
	event, err := parseObject("", body)
	if err != nil {
		return unreadable(body, "the body is no JSON object")
	}
	e := envelope{
		id: event.text("id"), account: event.text("account"),
		kind: tidy(event.text("type")), apiVersion: tidy(event.text("api_version")),
		created: event.instant("created"),
	}
	if !storableID(e.id) {
		return unreadable(body, "the event's id is missing or is none")
	}
	if e.account != "" && !storableID(e.account) {
		return unreadable(body, "the event's account is none")
	}
	if live, known := event.truth("livemode"); known {
		e.livemode = &live
	}
	e.judge(event, mode)
	if e.state != StateReceived {
		e.subscriptions = nil
	}
	return e
}

func unreadable(body []byte, reason string) envelope {
	sum := sha256.Sum256(body)
	return envelope{id: "sha256:" + hex.EncodeToString(sum[:]), state: StateParked, reason: reason}
}

func (e *envelope) settle(state, reason string) { e.state, e.reason = state, reason }

func (e *envelope) judge(event jsonObject, mode Mode) {
	object := event.object("data").object("object")
	e.objectKind, e.objectID = tidy(object.text("object")), storable(object.text("id"))
	e.customerID = storable(object.id("customer"))
	about := concernOf(e.kind)
	switch {
	case event.has("object") && event.text("object") != "event":
		e.settle(StateParked, fmt.Sprintf("the body is no snapshot event but %q: give the endpoint events of the v1 API", tidy(event.text("object"))))
	case e.kind == "":
		e.settle(StateParked, "the event's type is missing")
	case about == concernsNothing:
		e.settle(StateIgnored, "nothing follows from events of this type")
	case e.livemode == nil:
		e.settle(StateParked, "livemode is missing")
	case !mode.accepts(*e.livemode):
		e.settle(StateIgnored, otherMode(*e.livemode, mode))
	case len(object.fields) == 0:
		e.settle(StateParked, "data.object is missing or is no object")
	default:
		e.collect(about, object)
	}
}

func otherMode(livemode bool, mode Mode) string {
	world := "test"
	if livemode {
		world = "live"
	}
	return fmt.Sprintf("it is of %s mode, and HEADROOM_STRIPE_MODE is %s", world, mode)
}

// collect finds what is to be looked up.
func (e *envelope) collect(about concern, object jsonObject) {
	ids, err := about.subscriptions(object)
	if err != nil {
		e.settle(StateParked, err.Error())
		return
	}
	slices.Sort(ids)
	e.subscriptions = slices.Compact(ids)
	i := slices.IndexFunc(e.subscriptions, func(id string) bool { return !storableID(id) })
	switch {
	case i >= 0:
		e.settle(StateParked, "a subscription's id is none")
	case len(e.subscriptions) > 0 || about == concernsObject && e.objectID != "":
		e.state = StateReceived
	case about == concernsObject || about == concernsSubscription:
		e.settle(StateParked, "data.object.id is missing or is none")
	default:
		e.settle(StateIgnored, "it is about no subscription")
	}
}

// storableID reports whether Postgres can keep and index the text as an id.
func storableID(s string) bool {
	return s != "" && len(s) <= longestID && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

func storable(id string) string {
	if storableID(id) {
		return id
	}
	return ""
}

// tidy is a text for people, cut and without what Postgres refuses.
func tidy(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) <= longestText {
		return s
	}
	cut := longestText
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
