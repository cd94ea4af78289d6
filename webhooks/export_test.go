package webhooks

import (
	"context"
	"crypto/sha256"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/subscriptions"
)

// What the tests of this package look at from outside.
type (
	SubscriptionObject = subscriptionObject
	SubscriptionItem   = subscriptionItem
	InvoiceObject      = invoiceObject
	InvoiceLine        = invoiceLine
	ChargeObject       = chargeObject
	RefundObject       = refundObject
	DisputeObject      = disputeObject
	CheckoutSession    = checkoutSession
	CustomerObject     = customerObject
	Sighting           = sighting
	SourceSnapshot     = sourceSnapshot
	PricedPlan         = pricedPlan
	Undecodable        = undecodable
	Recorded           = recorded
	SyncKey            = syncKey
	Settlement         = settlement
	Verdict            = verdict
)

var (
	KnownVersion       = knownVersion
	DecodeSubscription = decodeSubscription
	DecodeInvoice      = decodeInvoice
	DecodeCharge       = decodeCharge
	DecodeRefund       = decodeRefund
	DecodeDispute      = decodeDispute
	DecodeSession      = decodeSession
	DecodeCustomer     = decodeCustomer
	SnapshotOf         = snapshotOf
	PricesOf           = pricesOf
	ErrOtherMode       = errOtherMode
	Fingerprint        = fingerprint
)

const (
	MaxBody       = maxBody
	StorePatience = storePatience
	WakeChannel   = wakeChannel
	SeveralSQL    = severalSQL
)

// Path is where an undecodable object lacks something.
func (e *undecodable) Path() string { return e.path }

// Inquiry reports whether a dispute only asks.
func (d disputeObject) Inquiry() bool { return d.inquiry() }

// BilledPeriod is billedPeriod with names that a test can write.
type BilledPeriod struct {
	Period     subscriptions.Period
	Item       SubscriptionItem
	Unresolved bool
	PastDue    bool
	EndedAt    *time.Time
}

// PaymentState is the payment of a period of the subscription sub_acme.
func PaymentState(b BilledPeriod, invoices []InvoiceObject) string {
	return paymentState(billedPeriod{
		subscriptionID: "sub_acme", period: b.Period, item: b.Item, unresolved: b.Unresolved, pastDue: b.PastDue, endedAt: b.EndedAt,
	}, invoices)
}

// Sniffed is what is read of a body when it arrives.
type Sniffed struct {
	ID, Account, Type, APIVersion  string
	Livemode                       *bool
	Created                        *time.Time
	ObjectKind, ObjectID, Customer string
	Subscriptions                  []string
	State, Reason                  string
}

// Sniff reads any body.
func Sniff(body []byte, mode Mode) Sniffed {
	e := sniff(body, mode)
	return Sniffed{
		e.id, e.account, e.kind, e.apiVersion, e.livemode, e.created, e.objectKind, e.objectID, e.customerID,
		e.subscriptions, e.state, e.reason,
	}
}

// First and Altered tell of a recorded hit.
func (r recorded) First() bool   { return r.first }
func (r recorded) Altered() bool { return r.altered }

// RecordAs stores a body as if it came from the origin.
func (l *Ledger) RecordAs(ctx context.Context, origin string, body []byte, at time.Time) (Recorded, error) {
	return l.record(ctx, hit{body: body, sha256: sha256.Sum256(body), at: at, origin: origin})
}

// Ask asks for a look-up.
func (l *Ledger) Ask(ctx context.Context, key SyncKey, cause string, now time.Time) (int64, error) {
	return l.ask(ctx, key, cause, now)
}

// SettledThrough notes that a look-up is over.
func (l *Ledger) SettledThrough(ctx context.Context, key SyncKey, generation int64, v Verdict) error {
	return pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error { return l.settledThrough(ctx, tx, settlement{key, generation, v}) })
}

// SettledThroughIn notes it in a transaction of the test's.
func (l *Ledger) SettledThroughIn(ctx context.Context, tx pgx.Tx, s Settlement) error {
	return l.settledThrough(ctx, tx, s)
}

// SetState gives a verdict on one event.
func (l *Ledger) SetState(ctx context.Context, row int64, v Verdict) error {
	return l.setState(ctx, l.pool, row, v)
}

// NewVerdict is a verdict.
func NewVerdict(state, reason, workspace string, at time.Time) Verdict {
	return verdict{state, reason, workspace, at}
}

// NewSettlement is a look-up that is over.
func NewSettlement(key SyncKey, generation int64, v Verdict) Settlement {
	return settlement{key, generation, v}
}

// Woken is what whoever looks up in this process waits on.
func (l *Ledger) Woken() <-chan struct{} { return l.woken }

// ErrOvertaken means that a look-up that began later was settled first.
var ErrOvertaken = errOvertaken

// LookUp carries a look-up out as of a generation.
func (w *Worker) LookUp(ctx context.Context, key SyncKey, generation int64) error {
	return w.carryOut(ctx, lookup{key: key, generation: generation, cause: "a test"})
}

// KillAt makes this worker end its process with SIGKILL when it passes a step. See probe
// for the steps.
func (w *Worker) KillAt(step string) { w.probe = killer(step) }

// LeaseFor makes what this worker claims its own for so long.
func (w *Worker) LeaseFor(d time.Duration) { w.lease = d }

type killer string

func (k killer) at(step string) {
	if step == string(k) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// OnceAt has this worker do something when it passes a step for the first time.
func (w *Worker) OnceAt(step string, do func()) { w.probe = &meeting{step: step, do: do} }

type meeting struct {
	step string
	do   func()
	once sync.Once
}

func (m *meeting) at(step string) {
	if step == m.step {
		m.once.Do(m.do)
	}
}

// Considered is the catalog that unresolved subscriptions were held against last, -1 if
// none was.
func (w *Worker) Considered() int64 { return w.considered.Load() - 1 }
