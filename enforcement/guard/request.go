package guard

import "context"

// Request says what is to be done, and for whom.
type Request struct {
	// Organization is who has the limit, and Privilege which limit: Headroom's workspace,
	// and a feature or limit of its plan. Both are compared byte by byte with what the
	// provider knows. See NewKey for what they may be.
	Organization, Privilege string
	// Subject and Resource are who asks and on what; each may be empty. They are never part
	// of the lock: all of an organization draw on one limit.
	Subject, Resource string
	// Requested is how many units act will add. 0 asks whether the organization is
	// within its limit; a negative number is an *InvalidArgument.
	Requested int64
}

// check is the fault of the request, an *InvalidArgument, or nil.
func (r Request) check() error {
	if err := checkText("subject", r.Subject); err != nil {
		return err
	}
	if err := checkText("resource", r.Resource); err != nil {
		return err
	}
	if r.Requested < 0 {
		return &InvalidArgument{Field: "requested", Detail: "is negative; give units back by deleting what holds them"}
	}
	_, err := NewKey(r.Organization, r.Privilege)
	return err
}

// Callbacks are the two steps that are the application's.
type Callbacks[T, Tx any] struct {
	// Count says how much is used now. It must read through tx: another connection does
	// not see what the lock protects, and may wait for one that a guard holds.
	Count func(ctx context.Context, tx Tx) (Usage, error)
	// Act does what was asked for, through tx, and adds Request.Requested to what Count
	// counts. It should do nothing slow, such as a call over the network: others wait.
	Act func(ctx context.Context, tx Tx) (T, error)
}

// Total is a Count for a usage that is one number.
func Total[Tx any](count func(ctx context.Context, tx Tx) (int64, error)) func(context.Context, Tx) (Usage, error) {
	return func(ctx context.Context, tx Tx) (Usage, error) {
		n, err := count(ctx, tx)
		return Usage{Total: n}, err
	}
}

// Usage is how much is used at a moment.
type Usage struct {
	// Total is the whole organization's.
	Total int64
	// Subject and Resource are the parts of the request's subject and resource, nil where
	// they were not counted. They must be there where the privilege has such a cap.
	Subject, Resource *int64
	// Parts are for people to read. They need not add up.
	Parts map[string]int64
}

// check refuses what cannot be: a mistake in a query must not become room.
func (u Usage) check() error {
	if u.Total < 0 {
		return &InvalidUsage{Field: "total", Detail: "is negative"}
	}
	parts := map[string]int64{}
	for name, n := range u.Parts {
		parts["part "+name] = n
	}
	if u.Subject != nil {
		parts["subject"] = *u.Subject
	}
	if u.Resource != nil {
		parts["resource"] = *u.Resource
	}
	for name, n := range parts {
		switch {
		case n < 0:
			return &InvalidUsage{Field: name, Detail: "is negative"}
		case n > u.Total:
			return &InvalidUsage{Field: name, Detail: "is more than the total"}
		}
	}
	return nil
}
