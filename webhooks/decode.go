package webhooks

import (
	"slices"
	"strings"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
)

// The decoder reads Stripe's objects as each version of its API writes them. What
// moved between versions is looked for in all places where it ever was, rather
// than where the version says, so that a version never seen is read too if what
// is needed has stayed somewhere. What is not needed may be missing or anything.
//
//	               to 2024-06-20, acacia      from 2025-03-31.basil on
//	period         the subscription's         the item's
//	its invoice's  invoice.subscription       invoice.parent.subscription_details
//	paid           invoice.paid               invoice.status, which is as old
//	price          line.price, line.plan      line.pricing.price_details
//	proration      line.proration             line.parent.….proration

// Versions by date end here; what came later has the name of its release.
const (
	oldestVersion = "2020-08-27"
	lastUnnamed   = "2024-06-20"
)

// knownVersion reports whether the decoder was written with the version in mind.
func knownVersion(version string) bool {
	date, release, named := strings.Cut(version, ".")
	if _, err := time.Parse(time.DateOnly, date); err != nil {
		return false
	}
	if !named {
		return date >= oldestVersion && date <= lastUnnamed
	}
	return slices.Contains([]string{"acacia", "basil", "clover", "dahlia", "endive"}, release)
}

// period is current_period_start and current_period_end of an object, nil if it has
// neither. One without the other, or an end that is not after the start, is an error.
func (o jsonObject) period() (*subscriptions.Period, error) {
	const from, to = "current_period_start", "current_period_end"
	if !o.has(from) && !o.has(to) {
		return nil, nil
	}
	start, end := o.instant(from), o.instant(to)
	switch {
	case start == nil:
		return nil, &undecodable{o.at(from), "is no time"}
	case end == nil:
		return nil, &undecodable{o.at(to), "is no time"}
	case !start.Before(*end):
		return nil, &undecodable{o.at(to), "is not after " + from}
	}
	return &subscriptions.Period{Start: *start, End: *end}, nil
}
