package guard

import (
	"context"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
)

const (
	defaultCatalogTTL = 10 * time.Second
	// catalogRetry is how long a catalog that could not be read is left alone.
	catalogRetry = time.Second
)

// knownKinds remembers the catalog's features for a while.
type knownKinds struct {
	catalog Catalog
	ttl     time.Duration
	now     func() time.Time
	// turn has one place: who fills it may read and write what follows. It is no mutex,
	// because who waits for another's reading has a context that may end.
	turn  chan struct{}
	kinds map[string]subscriptions.FeatureKind
	// err is why nothing is known.
	err error
	// next is when to read again.
	next time.Time
}

func newKnownKinds(o PlanOptions) *knownKinds {
	return &knownKinds{catalog: o.Catalog, ttl: o.CatalogTTL, now: o.Now, turn: make(chan struct{}, 1)}
}

// get is what the catalog names. While it cannot be read, what was known before holds.
func (k *knownKinds) get(ctx context.Context) (map[string]subscriptions.FeatureKind, error) {
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ended(ctx)
	}
	defer func() { <-k.turn }()
	if k.now().Before(k.next) {
		return k.kinds, k.err
	}
	kinds, err := k.catalog.Features(ctx)
	switch {
	case err == nil:
		k.kinds, k.err, k.next = kinds, nil, k.now().Add(k.ttl)
	case ctx.Err() != nil:
		return nil, err // the caller's own haste says nothing of the catalog
	default:
		k.next = k.now().Add(catalogRetry)
		if k.kinds == nil {
			k.err = err
		}
	}
	return k.kinds, k.err
}
