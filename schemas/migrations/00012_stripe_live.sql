-- Who may pay twice.

-- +goose Up

-- Each scrape of the metrics counts the workspaces with several live subscriptions of
-- Stripe's. With the index it reads no row of them for that.
CREATE INDEX subscriptions_live_of_stripe ON subscriptions (workspace_id)
    WHERE closed_at IS NULL AND source = 'stripe' AND status IN ('active', 'trialing', 'past_due');
