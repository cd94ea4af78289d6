package subscriptions

// FeatureKind says how a feature is measured. A feature is of one kind in the whole catalog.
type FeatureKind string

const (
	// FeatureStock is what a workspace has at a moment, such as projects or seats: it
	// goes down when something is given up, and never by itself.
	FeatureStock FeatureKind = "stock"
	// FeatureFlow is what a workspace uses in a quota period, such as e-mails: each
	// period begins at 0.
	FeatureFlow FeatureKind = "flow"
	// FeatureBoolean is on where a plan includes it, and not counted.
	FeatureBoolean FeatureKind = "boolean"
)

// KindOf is the kind of a feature of the snapshot.
func (s Snapshot) KindOf(feature string) FeatureKind {
	if kind, stated := s.Kinds[feature]; stated {
		return kind
	}
	return FeatureStock
}
