package stripetest

import (
	"maps"
	"time"
)

// Payment is what becomes of the attempts to charge a customer.
type Payment string

// The outcomes of an attempt.
const (
	// PaymentSucceeds is the default.
	PaymentSucceeds Payment = "succeeds"
	PaymentDeclines Payment = "declines"
	// PaymentNeedsAction is a card that asks for authentication each time.
	PaymentNeedsAction Payment = "needs_action"
	// PaymentMethodMissing is a customer without a payment method.
	PaymentMethodMissing Payment = "method_missing"
	// PaymentDelayed is a method such as SEPA debit: the invoice stays open until
	// SettlePayment.
	PaymentDelayed Payment = "delayed"
)

// Customer is one who pays.
type Customer struct {
	ID, Email, Account string
	Livemode           bool
	// TestClock is the id of the clock it lives by, empty for the account's.
	TestClock string
	Metadata  map[string]string
	Payment   Payment
	// Balance is as at Stripe: negative is credit that covers coming invoices.
	Balance int64
	Created time.Time
	Deleted bool
}

// CustomerParams describe a customer to be made.
type CustomerParams struct {
	Email    string
	Metadata map[string]string
	// Account is the connected account that the customer belongs to, if any.
	Account  string
	Livemode bool
	// TestClock is the id that CreateTestClock returned, if any.
	TestClock string
	// Payment is PaymentSucceeds if not given.
	Payment Payment
}

// CreateCustomer makes a customer. An unknown test clock is taken for the account's own.
func (s *Stripe) CreateCustomer(p CustomerParams) Customer {
	s.enter()
	defer s.leave()
	if _, ok := s.clocks[p.TestClock]; !ok {
		p.TestClock = ""
	}
	c := &Customer{
		ID: s.ids.make("cus"), Email: p.Email, Account: p.Account, Livemode: p.Livemode, TestClock: p.TestClock,
		Metadata: maps.Clone(p.Metadata), Payment: orElse(p.Payment, PaymentSucceeds), Created: s.clocks[p.TestClock].now,
	}
	s.customers[c.ID], s.accounts[c.Account] = c, true
	s.emit(happening{typ: "customer.created", object: cloneCustomer(c)})
	return *cloneCustomer(c)
}

// SetPayment decides what becomes of the coming attempts to charge a customer.
func (s *Stripe) SetPayment(customer string, p Payment) error {
	s.enter()
	defer s.leave()
	c, err := s.customer(customer)
	if err != nil {
		return err
	}
	c.Payment = p
	return nil
}

// Credit gives a customer credit that covers coming invoices.
func (s *Stripe) Credit(customer string, amount int64) error {
	s.enter()
	defer s.leave()
	c, err := s.customer(customer)
	if err != nil {
		return err
	}
	s.changeCustomer(c, func() { c.Balance -= amount })
	return nil
}

// DeleteCustomer deletes a customer and cancels its subscriptions at once, as Stripe
// does. The subscriptions can still be read.
func (s *Stripe) DeleteCustomer(id string) error {
	s.enter()
	defer s.leave()
	c, err := s.customer(id)
	if err != nil {
		return err
	}
	for _, sub := range s.subs.order {
		if sub.Customer == id && !sub.ended() {
			s.end(sub, ending{at: s.now(sub), reason: "cancellation_requested"})
		}
	}
	before := cloneCustomer(c)
	c.Deleted = true
	s.emit(happening{typ: "customer.deleted", object: before})
	return nil
}

// Customer is the customer of an id, deleted or not.
func (s *Stripe) Customer(id string) (Customer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.customers[id]
	if !ok {
		return Customer{}, missing("customer", id)
	}
	return *cloneCustomer(c), nil
}

func (s *Stripe) customer(id string) (*Customer, error) {
	c, ok := s.customers[id]
	if !ok || c.Deleted {
		return nil, missing("customer", id)
	}
	return c, nil
}

func (s *Stripe) changeCustomer(c *Customer, change func()) {
	before := cloneCustomer(c)
	change()
	s.emit(happening{typ: "customer.updated", object: cloneCustomer(c), before: before})
}

func (c *Customer) owner() owner {
	return owner{object: "customer", id: c.ID, account: c.Account, clock: c.TestClock, livemode: c.Livemode}
}

func cloneCustomer(c *Customer) *Customer {
	out := *c
	out.Metadata = maps.Clone(c.Metadata)
	return &out
}

func merged(into, values map[string]string) map[string]string {
	out := maps.Clone(into)
	if out == nil {
		out = map[string]string{}
	}
	for key, value := range values {
		if value == "" {
			delete(out, key)
			continue
		}
		out[key] = value
	}
	return out
}
