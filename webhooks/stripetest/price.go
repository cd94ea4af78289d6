package stripetest

import "time"

// Price is a recurring price.
type Price struct {
	ID, Product, Currency string
	// Amount is in the currency's smallest unit, for one and one period.
	Amount   int64
	Interval Interval
	// Count is the number of intervals in a period.
	Count   int
	Active  bool
	Created time.Time
}

// PriceParams describe a price to be made.
type PriceParams struct {
	// ID and Product are made up if empty. A given ID replaces a price of that id.
	ID, Product string
	Amount      int64
	// Currency is "usd", Interval Month and Count 1 if not given.
	Currency string
	Interval Interval
	Count    int
}

// CreatePrice makes a price, with its event.
func (s *Stripe) CreatePrice(p PriceParams) Price {
	s.enter()
	defer s.leave()
	price := &Price{
		ID: p.ID, Product: p.Product, Amount: p.Amount, Currency: orElse(p.Currency, "usd"),
		Interval: orElse(p.Interval, Month), Count: orElse(p.Count, 1), Active: true, Created: s.clocks[""].now,
	}
	if price.ID == "" {
		price.ID = s.ids.make("price")
	}
	if price.Product == "" {
		price.Product = s.ids.make("prod")
	}
	s.prices[price.ID] = price
	s.emit(happening{typ: "price.created", object: clonePrice(price)})
	return *price
}

// ArchivePrice makes a price inactive. Subscriptions on it are billed as before.
func (s *Stripe) ArchivePrice(id string) error {
	s.enter()
	defer s.leave()
	price, ok := s.prices[id]
	if !ok {
		return missing("price", id)
	}
	before := clonePrice(price)
	price.Active = false
	s.emit(happening{typ: "price.updated", object: clonePrice(price), before: before})
	return nil
}

func clonePrice(p *Price) *Price {
	out := *p
	return &out
}
