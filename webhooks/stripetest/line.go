package stripetest

import (
	"fmt"
	"time"
)

// charge is the line for a whole period of an item; a trial costs nothing.
func charge(sub *Subscription, item Item) Line {
	line := Line{
		Amount: item.Price.Amount * item.Quantity, Price: item.Price, Quantity: item.Quantity, Item: item.ID,
		Subscription: sub.ID, Start: item.Start, End: item.End,
		Description: fmt.Sprintf("%d × %s", item.Quantity, item.Price.Product),
	}
	if sub.Status == Trialing {
		line.Amount, line.Description = 0, "Trial period for "+item.Price.Product
	}
	return line
}

func chargesOf(sub *Subscription) []Line {
	lines := make([]Line, 0, len(sub.Items))
	for _, item := range sub.Items {
		lines = append(lines, charge(sub, item))
	}
	return lines
}

// credit gives back what is left of an item's period from now on.
func credit(sub *Subscription, item Item, now time.Time) Line {
	line := charge(sub, item)
	line.Amount = -share(line.Amount, now, item.End, item.Start, item.End)
	line.Start, line.Proration, line.Description = now, true, "Unused time on "+item.Price.Product
	return line
}

// remaining charges what is left of an item's period from now on. The length of a whole
// period is what the price is for.
func remaining(sub *Subscription, item Item, now time.Time) Line {
	line := charge(sub, item)
	whole := item.Price.step(item.End, -1)
	line.Amount = share(line.Amount, now, item.End, whole, item.End)
	line.Start, line.Proration, line.Description = now, true, "Remaining time on "+item.Price.Product
	return line
}

func totalOf(lines []Line) int64 {
	var sum int64
	for _, line := range lines {
		sum += line.Amount
	}
	return sum
}
