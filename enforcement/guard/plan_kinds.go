package guard

import (
	"context"
	"time"

	"github.com/headroomhq/headroom/subscriptions"
)

const defaultCatalogTTL = 10 * time.Second

// knownKinds remembers the catalog's features for a while.
type knownKinds struct {
	catalog Catalog
	ttl     time.Duration
	now     func() time.Time
	// turn has one place: who fills it may read and write what follows. It is no mutex,
	// because who waits for another's reading has a context that may end.
	turn   chan struct{}
	kinds  map[string]subscriptions.FeatureKind
	readAt time.Time
}

func newKnownKinds(o PlanOptions) *knownKinds {
	return &knownKinds{catalog: o.Catalog, ttl: o.CatalogTTL, now: o.Now, turn: make(chan struct{}, 1)}
}

// get is what the catalog names. When it cannot be read, what was known before holds.
func (k *knownKinds) get(ctx context.Context) (map[string]subscriptions.FeatureKind, error) {
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ended(ctx)
	}
	defer func() { <-k.turn }()
	if k.kinds != nil && k.now().Sub(k.readAt) < k.ttl {
		return k.kinds, nil
	}
	kinds, err := k.catalog.Features(ctx)
	switch {
	case err == nil:
		k.kinds, k.readAt = kinds, k.now()
	case k.kinds == nil:
		return nil, err
	}
	return k.kinds, nil
}
