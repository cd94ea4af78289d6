package webhooks_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/subscriptions"
	"github.com/headroomhq/headroom/webhooks"
)

// fixtures are the versions of which the corpus has objects, and the objects.
func fixtures(t testing.TB, kind string) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/" + kind + ".*.json")
	if err != nil || len(names) != 9 {
		t.Fatalf("the corpus has %d objects of kind %s (%v)", len(names), kind, err)
	}
	found := make(map[string][]byte)
	for _, name := range names {
		body, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found[strings.TrimSuffix(strings.TrimPrefix(filepath.Base(name), kind+"."), ".json")] = body
	}
	return found
}

func day(year int, month time.Month, day int) time.Time {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

var february = subscriptions.Period{Start: day(2026, 2, 1), End: day(2026, 3, 1)}

// The same subscription in every version is the same to the rest of the program.
func TestASubscriptionOfEveryVersion(t *testing.T) {
	t.Parallel()
	want := webhooks.SubscriptionObject{
		ID: "sub_acme", CustomerID: "cus_acme", Livemode: true, Status: "active", Created: day(2026, 1, 1),
		Metadata: map[string]string{"workspace_id": "acme"}, LatestInvoice: "in_feb",
		Items: []webhooks.SubscriptionItem{{ID: "si_main", PriceID: "price_pro_month", Quantity: 3, Period: february}},
	}
	for version, body := range fixtures(t, "subscription") {
		got, err := webhooks.DecodeSubscription(body)
		if err != nil {
			t.Errorf("%s: %v", version, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
		if !webhooks.KnownVersion(version) {
			t.Errorf("version %s is not known", version)
		}
	}
}

func TestAnInvoiceOfEveryVersion(t *testing.T) {
	t.Parallel()
	paidAt := time.Date(2026, 2, 1, 1, 0, 3, 0, time.UTC)
	want := webhooks.InvoiceObject{
		ID: "in_feb", SubscriptionID: "sub_acme", Status: "paid", Paid: true, PaidAt: &paidAt,
		Attempts: 1, Attempted: true, Created: day(2026, 2, 1).Add(3 * time.Second),
		Lines: []webhooks.InvoiceLine{{
			ID: "il_feb", PriceID: "price_pro_month", ItemID: "si_main", SubscriptionID: "sub_acme", Amount: 7500,
			Start: february.Start, End: february.End,
		}},
	}
	for version, body := range fixtures(t, "invoice") {
		got, err := webhooks.DecodeInvoice(body)
		if err != nil {
			t.Errorf("%s: %v", version, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
	}
}

func TestVersionsNeverSeenAreNotKnown(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"2020-08-27": true, "2023-08-16": true, "2024-06-20": true, "2025-08-27.basil": true, "2026-01-28.clover": true,
		"2019-12-03": false, "2024-06-21": false, "2027-03-01.foxglove": false, "": false, "basil": false, "20xx-01-01.basil": false,
		"2025-03-31.preview": false,
	} {
		if got := webhooks.KnownVersion(version); got != want {
			t.Errorf("version %q: known %t", version, got)
		}
	}
	body := edit(t, fixtures(t, "subscription")["2026-09-30.endive"], `"object": "subscription"`, `"object": "subscription", "novelty": [[]]`)
	if _, err := webhooks.DecodeSubscription(body); err != nil {
		t.Errorf("an object that has all that is needed: %v", err)
	}
}

// edit exchanges pairs of texts, each of which has to be there.
func edit(t testing.TB, body []byte, changes ...string) []byte {
	t.Helper()
	text := string(body)
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(text, changes[i]) {
			t.Fatalf("%q is not in the object", changes[i])
		}
		text = strings.ReplaceAll(text, changes[i], changes[i+1])
	}
	return []byte(text)
}

const (
	startIs = `"current_period_start": 1769904000`
	endIs   = `"current_period_end": 1772323200`
)

func TestASubscriptionWithoutWhatIsNeededIsUndecodable(t *testing.T) {
	t.Parallel()
	old, basil := fixtures(t, "subscription")["2024-06-20"], fixtures(t, "subscription")["2025-03-31.basil"]
	for name, c := range map[string]struct {
		body []byte
		path string
	}{
		"no JSON":                    {[]byte("{"), "subscription"},
		"null":                       {[]byte("null"), "subscription"},
		"no id":                      {edit(t, old, `"id": "sub_acme"`, `"id": null`), "subscription.id"},
		"no status":                  {edit(t, old, `"status": "active"`, `"status": 3`), "subscription.status"},
		"no created":                 {edit(t, old, `"created": 1767225600`, `"created": 0`), "subscription.created"},
		"no livemode":                {edit(t, old, `"livemode": true`, `"livemode": "true"`), "subscription.livemode"},
		"no period anywhere, old":    {edit(t, old, startIs, `"x": 1`, endIs, `"y": 1`), "subscription.items.data[0].current_period_start"},
		"no period anywhere, basil":  {edit(t, basil, startIs, `"x": 1`, endIs, `"y": 1`), "subscription.items.data[0].current_period_start"},
		"a period that is null":      {edit(t, basil, startIs, `"current_period_start": null`, endIs, `"current_period_end": null`), "subscription.items.data[0].current_period_start"},
		"a period of the epoch":      {edit(t, basil, startIs, `"current_period_start": 0`, endIs, `"current_period_end": 0`), "subscription.items.data[0].current_period_start"},
		"a period without an end":    {edit(t, old, endIs, `"y": 1`), "subscription.current_period_end"},
		"a period without a start":   {edit(t, basil, startIs, `"x": 1`), "subscription.items.data[0].current_period_start"},
		"a period that is a text":    {edit(t, basil, endIs, `"current_period_end": "tomorrow"`), "subscription.items.data[0].current_period_end"},
		"a period of a moment":       {edit(t, basil, endIs, `"current_period_end": 1769904000`), "subscription.items.data[0].current_period_end"},
		"a period of half a second":  {edit(t, basil, endIs, `"current_period_end": 1772323200.5`), "subscription.items.data[0].current_period_end"},
		"items that are no objects":  {edit(t, old, `"data": [`, `"data": [1,`), "subscription.items.data[0]"},
		"items that are all deleted": {edit(t, old, `"id": "si_main"`, `"id": "si_main", "deleted": true`), "subscription.items"},
	} {
		got, err := webhooks.DecodeSubscription(c.body)
		var fault *webhooks.Undecodable
		if !errors.As(err, &fault) || fault.Path() != c.path {
			t.Errorf("%s: %v, %+v, want a fault of %s", name, err, got, c.path)
		}
	}
}

func TestAnInvoiceWithoutWhatIsNeededIsUndecodable(t *testing.T) {
	t.Parallel()
	old := fixtures(t, "invoice")["2024-06-20"]
	for name, c := range map[string]struct {
		body []byte
		path string
	}{
		"a list":                     {[]byte("[]"), "invoice"},
		"no id":                      {edit(t, old, `"id": "in_feb"`, `"id": ""`), "invoice.id"},
		"no created":                 {edit(t, old, `"created": 1769904003`, `"created": null`), "invoice.created"},
		"neither status nor paid":    {edit(t, old, `"status": "paid"`, `"status": null`, `"paid": true`, `"paid": null`), "invoice.status"},
		"a line without a start":     {edit(t, old, `"start": 1769904000`, `"start": null`), "invoice.lines.data[0].period.start"},
		"a line without an end":      {edit(t, old, `"end": 1772323200`, `"end": 0`), "invoice.lines.data[0].period.end"},
		"a line that ends too early": {edit(t, old, `"end": 1772323200`, `"end": 1`), "invoice.lines.data[0].period.end"},
		"lines that are no objects":  {edit(t, old, `"data": [`, `"data": [null,`), "invoice.lines.data[0]"},
	} {
		_, err := webhooks.DecodeInvoice(c.body)
		var fault *webhooks.Undecodable
		if !errors.As(err, &fault) || fault.Path() != c.path {
			t.Errorf("%s: %v, want a fault of %s", name, err, c.path)
		}
	}
}

// Everything that Stripe writes in more than one way, and what it comes to.
func TestWhatIsWrittenInSeveralWays(t *testing.T) {
	t.Parallel()
	subscription, invoice := fixtures(t, "subscription"), fixtures(t, "invoice")
	old, clover := subscription["2024-06-20"], subscription["2025-09-30.clover"]
	decode := func(body []byte) webhooks.SubscriptionObject {
		t.Helper()
		s, err := webhooks.DecodeSubscription(body)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	bill := func(body []byte) webhooks.InvoiceObject {
		t.Helper()
		i, err := webhooks.DecodeInvoice(body)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	end := february.End
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"a quantity that is a text", decode(edit(t, clover, `"quantity": 3`, `"quantity": "4"`)).Items[0].Quantity, int64(4)},
		{"a quantity with a fraction of zero", decode(edit(t, clover, `"quantity": 3`, `"quantity": 5.0`)).Items[0].Quantity, int64(5)},
		{"a metered price has no quantity", decode(edit(t, clover, `"quantity": 3,`, ``)).Items[0].Quantity, int64(1)},
		{"a quantity of nothing", decode(edit(t, clover, `"quantity": 3`, `"quantity": 0`)).Items[0].Quantity, int64(0)},
		{"instants that are texts", decode(edit(t, clover, startIs, `"current_period_start": "1769904000"`)).Items[0].Period, february},
		{"instants in floating point", decode(edit(t, clover, startIs, `"current_period_start": 1.769904e9`)).Items[0].Period, february},
		{"the item's period before the whole's", decode(edit(t, clover, `"object": "subscription",`, `"object": "subscription", "current_period_start": 5, "current_period_end": 6,`)).Items[0].Period, february},
		{"no price but a plan", decode(edit(t, old, `"price": {`, `"price": null, "former": {`)).Items[0].PriceID, "price_pro_month"},
		{"one plan and no items", decode(edit(t, subscription["2020-08-27"], `"items": {`, `"things": {`)).Items[0].PriceID, "price_pro_month"},
		{"more items than listed", decode(edit(t, old, `"has_more": false`, `"has_more": true`)).MoreItems, true},
		{"a status that nobody knows", decode(edit(t, old, `"status": "active"`, `"status": "hibernating"`)).Status, "hibernating"},
		{"a customer that is gone", decode(edit(t, old, `"customer": "cus_acme"`, `"customer": null`)).CustomerID, ""},
		{"a customer that was deleted", decode(edit(t, old, `"customer": "cus_acme"`, `"customer": {"id": "cus_acme", "deleted": true}`)).CustomerID, "cus_acme"},
		{"a key that is given twice", decode(edit(t, old, `"status": "active"`, `"status": "active", "status": "paused"`)).Status, "paused"},
		{"objects that are given twice are not mixed", decode(edit(t, old, `"metadata": {
    "workspace_id": "acme"
  }`, `"metadata": {"workspace_id": "acme"}, "metadata": {"other": "x"}`)).Metadata, map[string]string{"other": "x"}},
		{"a key with capitals is another key", decode(edit(t, old, `"status": "active"`, `"status": "active", "Status": "paused"`)).Status, "active"},
		{"a test clock", decode(edit(t, old, `"object": "subscription",`, `"object": "subscription", "test_clock": "clock_1",`)).TestClock, "clock_1"},
		{"a pause of collection", decode(edit(t, old, `"pause_collection": null`, `"pause_collection": {"behavior": "void"}`)).PauseCollection, "void"},
		{"a change that waits", decode(edit(t, old, `"pending_update": null`, `"pending_update": {"subscription_items": []}`)).PendingUpdate, true},
		{"why it is paused", decode(edit(t, subscription["2026-09-30.endive"], `"paused": null`, `"paused": {"type": "manual"}`)).PausedBecause, `{"type": "manual"}`},
		{"cancel_at", *decode(edit(t, clover, `"cancel_at": null`, `"cancel_at": 1772323200`)).CancelAt, end},
		{"cancel_at_period_end", decode(edit(t, old, `"cancel_at_period_end": false`, `"cancel_at_period_end": true`)).CancelAtPeriodEnd, true},
		{"ended_at", *decode(edit(t, old, `"ended_at": null`, `"ended_at": 1772323200`)).EndedAt, end},
		{"trial_end", *decode(edit(t, old, `"trial_end": null`, `"trial_end": 1772323200`)).TrialEnd, end},

		{"paid is the status", bill(edit(t, invoice["2024-06-20"], `"status": "paid"`, `"status": "open"`)).Paid, false},
		{"paid without a status", bill(edit(t, invoice["2024-06-20"], `"status": "paid"`, `"status": null`)).Status, "paid"},
		{"unpaid without a status", bill(edit(t, invoice["2024-06-20"], `"status": "paid"`, `"status": null`, `"paid": true`, `"paid": false`)).Status, "open"},
		{"subscription under parent", bill(invoice["2025-03-31.basil"]).SubscriptionID, "sub_acme"},
		{"subscription of a line", bill(edit(t, invoice["2025-03-31.basil"], `"type": "subscription_details",`, ``, `"subscription_details": {`, `"former_details": {`)).SubscriptionID, "sub_acme"},
		{"no subscription", bill(edit(t, invoice["2024-06-20"], `"subscription": "sub_acme"`, `"subscription": null`)).SubscriptionID, ""},
		{"more lines than listed", bill(edit(t, invoice["2024-06-20"], `"has_more": false`, `"has_more": true`)).MoreLines, true},
		{"the price of an old plan", bill(edit(t, invoice["2020-08-27"], `"price": {`, `"former": {`)).Lines[0].PriceID, "price_pro_month"},
		{"the price of a new line", bill(invoice["2026-03-25.dahlia"]).Lines[0].PriceID, "price_pro_month"},
		{"proration of an old line", bill(edit(t, invoice["2024-06-20"], `"proration": false`, `"proration": true`)).Lines[0].Proration, true},
		{"proration of a new line", bill(edit(t, invoice["2025-09-30.clover"], `"proration": false`, `"proration": true`)).Lines[0].Proration, true},
		{"proration of a new invoice item", bill(edit(t, invoice["2025-09-30.clover"], `"invoice_item_details": null`, `"invoice_item_details": {"proration": true, "subscription": "sub_acme"}`)).Lines[0].Proration, true},
		{"an attempt count that is a text", bill(invoice["2023-10-16"]).Attempts, int64(1)},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
