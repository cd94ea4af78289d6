-- What a change of a subscription leaves behind besides its period rows: how it
-- is to end, which one the workspace is pinned to, and the events that tell it.

-- +goose Up

ALTER TABLE subscriptions
    -- When the subscription is set to end; the period runs until then.
    ADD COLUMN cancel_at timestamptz,
    -- When it ended for good. Such a row is never opened again, whatever arrives
    -- late; a row that merely was followed by another has closed_at alone.
    ADD COLUMN ended_at timestamptz,
    -- Where the period before ended, if that was earlier than this one began: the
    -- periods in between passed unseen and are not invented.
    ADD COLUMN gap_from timestamptz,
    -- Where the first period began that is not paid, while the status is past_due.
    -- The grace counts from it, so that a renewal does not start it anew.
    ADD COLUMN unpaid_since timestamptz;

-- Which of several live subscriptions counts whatever their plans' ranks are. It
-- names the subscription at its source and not a row, which the next renewal closes.
ALTER TABLE workspaces
    ADD COLUMN pinned_source    text,
    ADD COLUMN pinned_account   text,
    ADD COLUMN pinned_livemode  boolean,
    ADD COLUMN pinned_source_id text,
    ADD CONSTRAINT workspaces_pinned_whole
        CHECK (num_nulls(pinned_source, pinned_account, pinned_livemode, pinned_source_id) IN (0, 4));

-- An election reads a workspace's open periods, few among all that ever were.
CREATE INDEX subscriptions_open_of_workspace ON subscriptions (workspace_id) WHERE closed_at IS NULL;

-- Events to publish, written in the transaction of what they tell, so that neither
-- exists without the other. The id is the event's and the message's.
CREATE TABLE outbox (
    id           uuid        PRIMARY KEY,
    workspace_id text        NOT NULL,
    -- The order within a workspace, whose row is locked while it is written.
    position     bigint      GENERATED ALWAYS AS IDENTITY,
    subject_kind text        NOT NULL CHECK (subject_kind IN ('subscription.renewed', 'plan.invalidated')),
    -- The event's data.
    body         jsonb       NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    published_at timestamptz
);

-- A relay looks for what is not published yet, oldest first, and for whether
-- something older of the same workspace still waits. Both indexes stay small.
CREATE INDEX outbox_unpublished ON outbox (position) WHERE published_at IS NULL;
CREATE INDEX outbox_unpublished_of_workspace ON outbox (workspace_id, position) WHERE published_at IS NULL;
