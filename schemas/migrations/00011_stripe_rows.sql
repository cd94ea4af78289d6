-- What a subscription of Stripe's has besides its period, and what is known of one
-- before and beside its rows.

-- +goose Up

ALTER TABLE subscriptions
    -- When its source made the subscription: of several, the newest is meant by it.
    ADD COLUMN source_created  timestamptz,
    -- It lives by a clock of a test, so that no rule about the present holds for it.
    ADD COLUMN test_clock      boolean NOT NULL DEFAULT false,
    -- None of its prices is in the catalog: the plan is the last one that was known.
    ADD COLUMN plan_unresolved boolean NOT NULL DEFAULT false,
    -- A dispute has withdrawn money that was paid for it.
    ADD COLUMN disputed        boolean NOT NULL DEFAULT false;

-- A price that comes into the catalog resolves them.
CREATE INDEX subscriptions_plan_unresolved ON subscriptions (id) WHERE closed_at IS NULL AND plan_unresolved;

ALTER TABLE stripe_sync_requests
    -- Whose subscription it is at Stripe, as the last look-up saw it.
    ADD COLUMN customer_id text NOT NULL DEFAULT '',
    -- What the last look-up came to, in the words of an event's state.
    ADD COLUMN outcome     text NOT NULL DEFAULT '',
    ADD COLUMN reason      text NOT NULL DEFAULT '';

CREATE INDEX stripe_sync_requests_of_customer ON stripe_sync_requests (customer_id, subscription_id)
    WHERE customer_id <> '';

-- Subscriptions that wait for a workspace or a plan.
CREATE INDEX stripe_sync_requests_waiting ON stripe_sync_requests (outcome) WHERE outcome IN ('unmapped', 'parked');

-- Money that was given back or is contested, by the object that says so.
CREATE TABLE stripe_claims (
    account         text        NOT NULL,
    livemode        boolean     NOT NULL,
    kind            text        NOT NULL CHECK (kind IN ('refund', 'dispute')),
    -- The charge of a refund, the dispute itself.
    stripe_id       text        NOT NULL,
    subscription_id text        NOT NULL,
    invoice_id      text        NOT NULL,
    -- The dispute's status; empty for a refund.
    status          text        NOT NULL DEFAULT '',
    -- What was given back, or is withdrawn now, in the currency's smallest unit.
    amount          bigint      NOT NULL,
    updated_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (account, livemode, kind, stripe_id)
);

CREATE INDEX stripe_claims_of_subscription ON stripe_claims (account, livemode, subscription_id);

-- Which invoice a charge paid, and which subscription an invoice is of, as far as
-- they were told of.
CREATE INDEX stripe_events_by_object ON stripe_events (object_id) WHERE object_kind IN ('charge', 'invoice');
