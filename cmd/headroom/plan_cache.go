package main

import (
	"context"
	"errors"

	"github.com/headroomhq/headroom/subscriptions"
)

// planSource is where the process's plans are read. It tells the catalog part of
// health whether there is a default plan, as long as somebody, one at a time,
// asks for the catalog's revision.
type planSource struct {
	*subscriptions.Store
	catalog *part
	known   int64
}

func newPlanSource(store *subscriptions.Store, catalog *part) *planSource {
	return &planSource{Store: store, catalog: catalog, known: -1}
}

// CatalogRevision is the store's. When it is not the one before, there may be a
// default plan now, or none any more.
func (s *planSource) CatalogRevision(ctx context.Context) (int64, error) {
	revision, err := s.Store.CatalogRevision(ctx)
	if err == nil && revision != s.known {
		err = s.tell(ctx)
	}
	if err != nil {
		s.catalog.fail(err)
		return 0, err
	}
	s.known = revision
	return revision, nil
}

func (s *planSource) tell(ctx context.Context) error {
	switch err := s.RequireDefaultPlan(ctx); {
	case errors.Is(err, subscriptions.ErrNoDefaultPlan):
		noDefault := errors.New("no default plan: apply a catalog with `headroom plans apply FILE`")
		s.catalog.use(func(context.Context) error { return noDefault })
	case err != nil:
		return err
	default:
		s.catalog.use(func(context.Context) error { return nil })
	}
	return nil
}
