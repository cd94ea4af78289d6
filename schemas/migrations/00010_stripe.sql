-- What Stripe told, kept before it is acknowledged, and what is to be looked up
-- because of it.

-- +goose Up

-- One row is one event, however often it is delivered. It keeps the first body as
-- it was signed, byte by byte. A body that cannot be read at all goes by its hash.
CREATE TABLE stripe_events (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- The connected account, empty for one's own.
    account         text        NOT NULL,
    event_id        text        NOT NULL,
    -- NULL where the body does not say.
    livemode        boolean,
    type            text        NOT NULL DEFAULT '',
    api_version     text        NOT NULL DEFAULT '',
    created         timestamptz,
    received_at     timestamptz NOT NULL,
    body            bytea       NOT NULL,
    object_kind     text        NOT NULL DEFAULT '',
    object_id       text        NOT NULL DEFAULT '',
    -- The first of those in stripe_event_subscriptions, for a listing.
    subscription_id text        NOT NULL DEFAULT '',
    customer_id     text        NOT NULL DEFAULT '',
    state           text        NOT NULL CHECK (state IN ('received', 'done', 'ignored', 'unmapped', 'parked', 'dead')),
    reason          text        NOT NULL DEFAULT '',
    attempts        integer     NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL,
    workspace_id    text,
    settled_at      timestamptz,
    UNIQUE (event_id, account)
);

-- Listings by state, counts, and the oldest of each.
CREATE INDEX stripe_events_by_state ON stripe_events (state, id);

-- Events that concern no subscription by name: a charge, a dispute, a customer.
CREATE INDEX stripe_events_objects_due ON stripe_events (next_attempt_at)
    WHERE state IN ('received', 'unmapped') AND subscription_id = '';

-- One row is one time that an event arrived.
CREATE TABLE stripe_deliveries (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event       bigint      NOT NULL REFERENCES stripe_events (id) ON DELETE CASCADE,
    at          timestamptz NOT NULL,
    signed_at   timestamptz,
    -- Which secret it was signed with: a fingerprint, never the secret.
    secret      text        NOT NULL DEFAULT '',
    body_sha256 bytea       NOT NULL,
    bytes       integer     NOT NULL,
    origin      text        NOT NULL CHECK (origin IN ('webhook', 'sweep', 'replay'))
);

CREATE INDEX stripe_deliveries_of_event ON stripe_deliveries (event, id);

-- One row is one subscription that is or was to be looked up. Each reason to look
-- raises the generation; a look-up that began at generation g sets synced_generation
-- to g unless it is higher already, so that an old look-up never lands late and any
-- number of reasons cost one.
CREATE TABLE stripe_sync_requests (
    account           text        NOT NULL,
    livemode          boolean     NOT NULL,
    subscription_id   text        NOT NULL,
    generation        bigint      NOT NULL DEFAULT 1,
    synced_generation bigint      NOT NULL DEFAULT 0,
    requested_at      timestamptz NOT NULL,
    cause             text        NOT NULL,
    attempts          integer     NOT NULL DEFAULT 0,
    next_attempt_at   timestamptz NOT NULL,
    last_error        text        NOT NULL DEFAULT '',
    PRIMARY KEY (account, livemode, subscription_id),
    CHECK (synced_generation <= generation)
);

CREATE INDEX stripe_sync_requests_due ON stripe_sync_requests (next_attempt_at)
    WHERE synced_generation < generation;

-- Which subscriptions an event is about, and the generation that it asked for of
-- each: the event is settled when all of them are synced as far as that.
CREATE TABLE stripe_event_subscriptions (
    event           bigint NOT NULL REFERENCES stripe_events (id) ON DELETE CASCADE,
    subscription_id text   NOT NULL,
    generation      bigint NOT NULL,
    PRIMARY KEY (event, subscription_id)
);

CREATE INDEX stripe_events_of_subscription ON stripe_event_subscriptions (subscription_id, event);

-- Whose subscription or customer it is. Written once: nothing that Stripe carries
-- may move it to another workspace.
CREATE TABLE stripe_mappings (
    account      text        NOT NULL,
    livemode     boolean     NOT NULL,
    kind         text        NOT NULL CHECK (kind IN ('subscription', 'customer')),
    stripe_id    text        NOT NULL,
    workspace_id text        NOT NULL,
    cause        text        NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (account, livemode, kind, stripe_id)
);

CREATE INDEX stripe_mappings_of_workspace ON stripe_mappings (workspace_id);

-- How far each repair loop has come.
CREATE TABLE stripe_cursors (
    account    text        NOT NULL,
    livemode   boolean     NOT NULL,
    name       text        NOT NULL,
    position   jsonb       NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (account, livemode, name)
);
