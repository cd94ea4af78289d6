package webhooks

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/headroomhq/headroom/schemas"
)

// workspaceField is what a subscription's or a session's metadata call the workspace.
const workspaceField = "workspace_id"

// ownership is whose a subscription is, and how that is known.
type ownership struct {
	// workspace is empty while it is not known, and reason says why.
	workspace, reason string
	// cause is where it was said, empty if it is stored already.
	cause string
	// learned is the customer that is mapped with it, empty for none.
	learned string
}

// ownerOf finds whose a subscription is, by the first that says so:
//
//	the stored mapping of the subscription
//	its metadata                             creates the mapping
//	a purchase that led to it                creates it, and that of the customer
//	the stored mapping of the customer       creates it
//
// A purchase comes before the customer, who may pay for several workspaces. What comes
// from Stripe never changes a mapping. Sessions that were stored are read here; those
// of the finding were asked for.
func ownerOf(ctx context.Context, q queryer, key syncKey, f finding) (ownership, error) {
	args := key.args()
	args["kind"], args["id"] = mapsSubscription, key.SubscriptionID
	stored, err := mapped(ctx, q, args)
	if err != nil || stored != "" {
		return ownership{workspace: stored}, err
	}
	if said, there := f.Subscription.Metadata[workspaceField]; there {
		return namedOwner(said, "the subscription's metadata"), nil
	}
	sessions, err := storedSessions(ctx, q, key)
	if err != nil {
		return ownership{}, err
	}
	for _, session := range append(sessions, f.Sessions...) {
		if said := session.workspace(); said != "" {
			o := namedOwner(said, "checkout session "+session.ID)
			if o.workspace != "" {
				o.learned = f.Subscription.CustomerID
			}
			return o, nil
		}
	}
	args["kind"], args["id"] = mapsCustomer, f.Subscription.CustomerID
	stored, err = mapped(ctx, q, args)
	if err != nil {
		return ownership{}, err
	}
	if stored == "" {
		return ownership{reason: fmt.Sprintf(
			"no workspace is known: set metadata %s of the subscription, client_reference_id of the checkout, or map customer %s",
			workspaceField, f.Subscription.CustomerID)}, nil
	}
	return ownership{workspace: stored, cause: "customer " + f.Subscription.CustomerID}, nil
}

func namedOwner(said, where string) ownership {
	if !schemas.ValidID(said) {
		return ownership{reason: fmt.Sprintf("%s names workspace %q, which is no workspace id: map it by hand", where, tidy(said))}
	}
	return ownership{workspace: said, cause: where}
}

// workspace is what a session says, empty if nothing.
func (s checkoutSession) workspace() string {
	if s.ClientReferenceID != "" {
		return s.ClientReferenceID
	}
	return s.Metadata[workspaceField]
}

// storedSessions are the purchases of a subscription that were told of.
func storedSessions(ctx context.Context, q queryer, key syncKey) ([]checkoutSession, error) {
	rows, err := q.Query(ctx, `SELECT e.body FROM stripe_event_subscriptions c JOIN stripe_events e ON e.id = c.event
		WHERE c.subscription_id = @subscription AND e.account = @account AND e.livemode = @livemode
			AND e.object_kind = 'checkout.session' ORDER BY e.id`, key.args())
	if err != nil {
		return nil, fmt.Errorf("read checkout sessions of subscription %s: %w", key.SubscriptionID, err)
	}
	bodies, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		return nil, fmt.Errorf("read checkout sessions of subscription %s: %w", key.SubscriptionID, err)
	}
	var sessions []checkoutSession
	for _, body := range bodies {
		event, err := parseObject("", body)
		if err != nil {
			continue // parked when it arrived
		}
		session, err := decodeSession(event.object("data").fields["object"])
		if err == nil && session.SubscriptionID == key.SubscriptionID {
			sessions = append(sessions, session)
		}
	}
	return sessions, nil
}

// keep stores an ownership that was learned, and returns whose the subscription is now:
// somebody else may have been faster. It reports whether a customer was mapped.
func (o ownership) keep(ctx context.Context, tx pgx.Tx, key syncKey) (workspace string, customer bool, err error) {
	if o.workspace == "" || o.cause == "" {
		return o.workspace, false, nil
	}
	m := Mapping{
		WorkspaceID: o.workspace, Account: key.Account, Livemode: key.Livemode, Cause: o.cause,
		SubscriptionID: key.SubscriptionID, CustomerID: o.learned,
	}
	if o.learned != "" {
		is, err := mapOnce(ctx, tx, m, mapsCustomer)
		if err != nil {
			return "", false, err
		}
		customer = is == o.workspace
	}
	workspace, err = mapOnce(ctx, tx, m, mapsSubscription)
	return workspace, customer, err
}
