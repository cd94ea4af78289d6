-- News that is written in the transaction of what it tells, and published by a
-- relay afterwards.

-- +goose Up

-- One row is one event. Its id is the event's and the message's, so that a stream
-- stores it once however often it is published.
CREATE TABLE outbox (
    id           uuid        PRIMARY KEY,
    workspace_id text        NOT NULL,
    -- The order within a workspace: whoever writes holds the lock of the workspace's row.
    position     bigint      GENERATED ALWAYS AS IDENTITY,
    subject_kind text        NOT NULL CHECK (subject_kind IN ('subscription.renewed', 'plan.invalidated')),
    body         jsonb       NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    published_at timestamptz
);

-- What is left to publish is little beside what was published.
CREATE INDEX outbox_waiting ON outbox (position) WHERE published_at IS NULL;
CREATE INDEX outbox_waiting_of_workspace ON outbox (workspace_id, position) WHERE published_at IS NULL;
