package webhooks_test

import (
	"slices"
	"testing"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
	"github.com/headroomhq/headroom/webhooks"
)

// mainItem is the plan's item in these tables.
var mainItem = webhooks.SubscriptionItem{ID: "si_main", PriceID: "price_pro_month", Quantity: 1, Period: february}

func invoiceLine(amount int64, start, end time.Time, changes ...func(*webhooks.InvoiceLine)) webhooks.InvoiceLine {
	line := webhooks.InvoiceLine{ItemID: "si_main", PriceID: "price_pro_month", SubscriptionID: "sub_acme", Amount: amount, Start: start, End: end}
	for _, change := range changes {
		change(&line)
	}
	return line
}

func prorated(l *webhooks.InvoiceLine)  { l.Proration = true }
func ofAddOn(l *webhooks.InvoiceLine)   { l.ItemID, l.PriceID = "si_addon", "price_addon" }
func ofNoItem(l *webhooks.InvoiceLine)  { l.ItemID = "" }
func ofAnother(l *webhooks.InvoiceLine) { l.SubscriptionID = "sub_other" }

func invoiceOf(status string, lines ...webhooks.InvoiceLine) webhooks.InvoiceObject {
	return webhooks.InvoiceObject{ID: "in_1", SubscriptionID: "sub_acme", Status: status, Paid: status == "paid", Lines: lines}
}

func attempted(i webhooks.InvoiceObject) webhooks.InvoiceObject {
	i.Attempted, i.Attempts = true, 1
	return i
}

func paidAt(i webhooks.InvoiceObject, at time.Time) webhooks.InvoiceObject {
	i.PaidAt = &at
	return i
}

func TestWhichPeriodAnInvoicePays(t *testing.T) {
	t.Parallel()
	var (
		start, end = february.Start, february.End
		january    = day(2026, 1, 1)
		change     = start.Add(4 * time.Second)
		nextYear   = start.AddDate(1, 0, 0)
		renewal    = invoiceLine(2500, start, end)
		before     = invoiceLine(2500, january, start)
		credit     = invoiceLine(-2500, change, end, prorated)
		ended      = day(2026, 2, 10)
	)
	type invoices = []webhooks.InvoiceObject
	for name, c := range map[string]struct {
		period   webhooks.BilledPeriod
		invoices invoices
		want     string
	}{
		"no invoice":                     {webhooks.BilledPeriod{}, nil, "none"},
		"the draft hour of a renewal":    {webhooks.BilledPeriod{}, invoices{invoiceOf("paid", before), invoiceOf("draft", renewal)}, "pending"},
		"finalized and not tried yet":    {webhooks.BilledPeriod{}, invoices{invoiceOf("open", renewal)}, "pending"},
		"tried in vain":                  {webhooks.BilledPeriod{}, invoices{attempted(invoiceOf("open", renewal))}, "failed"},
		"due and not tried by Stripe":    {webhooks.BilledPeriod{PastDue: true}, invoices{invoiceOf("open", renewal)}, "failed"},
		"a draft while older money owes": {webhooks.BilledPeriod{PastDue: true}, invoices{invoiceOf("draft", renewal)}, "pending"},
		"written off":                    {webhooks.BilledPeriod{}, invoices{invoiceOf("uncollectible", renewal)}, "failed"},
		"voided":                         {webhooks.BilledPeriod{}, invoices{invoiceOf("void", renewal)}, "none"},
		"voided, and another one paid":   {webhooks.BilledPeriod{}, invoices{invoiceOf("void", renewal), invoiceOf("paid", renewal)}, "paid"},
		"a status that nobody knows":     {webhooks.BilledPeriod{}, invoices{invoiceOf("frozen", renewal)}, "none"},
		"paid":                           {webhooks.BilledPeriod{}, invoices{invoiceOf("paid", renewal)}, "paid"},
		"paid by another attempt":        {webhooks.BilledPeriod{}, invoices{attempted(invoiceOf("paid", renewal))}, "paid"},
		"paid by the second invoice":     {webhooks.BilledPeriod{}, invoices{attempted(invoiceOf("open", renewal)), invoiceOf("paid", renewal)}, "paid"},
		"nothing to pay: a trial":        {webhooks.BilledPeriod{}, invoices{invoiceOf("paid", invoiceLine(0, start, end))}, "paid"},
		"the period before is paid":      {webhooks.BilledPeriod{}, invoices{invoiceOf("paid", before)}, "none"},
		"the one after is paid":          {webhooks.BilledPeriod{}, invoices{invoiceOf("paid", invoiceLine(2500, end, day(2026, 4, 1)))}, "none"},
		"the credit comes first":         {webhooks.BilledPeriod{}, invoices{invoiceOf("paid", invoiceLine(-2500, january, start, prorated), renewal)}, "paid"},
		"an old price's credit alone":    {webhooks.BilledPeriod{}, invoices{invoiceOf("paid", credit)}, "none"},
		"the anchor was reset": {
			webhooks.BilledPeriod{Period: subscriptions.Period{Start: change, End: nextYear}},
			invoices{invoiceOf("paid", invoiceLine(-2500, change, end, prorated), invoiceLine(25000, change, change.AddDate(1, 0, 0)))},
			"paid",
		},
		"swapped to a year in place": {
			webhooks.BilledPeriod{Period: subscriptions.Period{Start: start, End: nextYear}},
			invoices{invoiceOf("paid", renewal), invoiceOf("paid", credit, invoiceLine(25000, change, nextYear, prorated))},
			"paid",
		},
		"the swap's payment alone is known": {
			webhooks.BilledPeriod{Period: subscriptions.Period{Start: start, End: nextYear}},
			invoices{invoiceOf("paid", credit, invoiceLine(25000, change, nextYear, prorated))},
			"paid",
		},
		"the swap is not paid, the period is": {
			webhooks.BilledPeriod{Period: subscriptions.Period{Start: start, End: nextYear}},
			invoices{invoiceOf("paid", renewal), attempted(invoiceOf("open", credit, invoiceLine(25000, change, nextYear, prorated)))},
			"paid",
		},
		"a change is paid, the period is not": {
			webhooks.BilledPeriod{}, invoices{attempted(invoiceOf("open", renewal)), invoiceOf("paid", invoiceLine(900, change, end, prorated))}, "failed",
		},
		"a change of the period before":   {webhooks.BilledPeriod{}, invoices{invoiceOf("paid", invoiceLine(900, january.AddDate(0, 0, 9), start, prorated))}, "none"},
		"an add-on's invoice besides":     {webhooks.BilledPeriod{}, invoices{invoiceOf("paid", renewal), attempted(invoiceOf("open", invoiceLine(100, start, end, ofAddOn)))}, "paid"},
		"the plan's line decides":         {webhooks.BilledPeriod{}, invoices{attempted(invoiceOf("open", renewal)), invoiceOf("paid", invoiceLine(100, start, end, ofAddOn))}, "failed"},
		"the item was exchanged since":    {webhooks.BilledPeriod{}, invoices{invoiceOf("paid", invoiceLine(2500, start, end, ofAddOn))}, "paid"},
		"a line that names no item":       {webhooks.BilledPeriod{}, invoices{invoiceOf("paid", invoiceLine(2500, start, end, ofNoItem)), attempted(invoiceOf("open", invoiceLine(1, start, end, ofAddOn)))}, "paid"},
		"no price is known: any line":     {webhooks.BilledPeriod{Unresolved: true}, invoices{attempted(invoiceOf("open", renewal)), invoiceOf("paid", invoiceLine(100, start, end, ofAddOn))}, "paid"},
		"another subscription's line":     {webhooks.BilledPeriod{}, invoices{invoiceOf("paid", invoiceLine(2500, start, end, ofAnother))}, "none"},
		"paid before the end":             {webhooks.BilledPeriod{EndedAt: &ended}, invoices{paidAt(invoiceOf("paid", renewal), ended)}, "paid"},
		"paid when all was over":          {webhooks.BilledPeriod{EndedAt: &ended}, invoices{paidAt(invoiceOf("paid", renewal), ended.Add(time.Second))}, "failed"},
		"ended, paid nobody knows when":   {webhooks.BilledPeriod{EndedAt: &ended}, invoices{invoiceOf("paid", renewal)}, "paid"},
		"a line without its subscription": {webhooks.BilledPeriod{}, invoices{invoiceOf("paid", invoiceLine(2500, start, end, func(l *webhooks.InvoiceLine) { l.SubscriptionID = "" }))}, "paid"},
	} {
		c.period.Item = mainItem
		if c.period.Period == (subscriptions.Period{}) {
			c.period.Period = february
		}
		if got := webhooks.PaymentState(c.period, c.invoices); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		slices.Reverse(c.invoices)
		if got := webhooks.PaymentState(c.period, c.invoices); got != c.want {
			t.Errorf("%s, the other way round: %s, want %s", name, got, c.want)
		}
	}
}
