-- The ledger: what the decision stream said, folded so that Redis can be rebuilt
-- from it and a person can read it. It may be written out of order and more than
-- once; the primary keys make that harmless.

-- +goose Up

-- One row is one allowed execution. A completion may be folded before its
-- decision: the row then has an outcome, decided = false and no plan yet, which is
-- why the columns that come with the decision may be NULL.
CREATE TABLE executions (
    workspace_id         text        NOT NULL,
    execution_id         text        NOT NULL,
    decision_id          text,
    request_event_id     text,
    request_event_source text,
    usage_epoch          text,
    subscription_id      uuid,
    period_start         timestamptz,
    period_end           timestamptz,
    plan_key             text,
    plan_revision        bigint,
    limits               jsonb,
    admitted_at          timestamptz,
    lease_expires_at     timestamptz,
    -- What the counters stood at once this execution was counted.
    used                 bigint,
    concurrent           bigint,
    peak                 bigint,
    outcome              text        CHECK (outcome IN ('succeeded', 'failed', 'canceled', 'not_started')),
    completed_at         timestamptz,
    runtime_code         integer,
    runtime_denied_at    timestamptz,
    decided              boolean     NOT NULL DEFAULT true,
    PRIMARY KEY (workspace_id, execution_id)
);

-- A workspace's record, newest first. (Counts per epoch are in period_usage.)
CREATE INDEX executions_of_workspace ON executions (workspace_id, admitted_at DESC);

-- Open executions are few among many closed ones: the index stays small, and
-- a rebuild finds a workspace's live leases without reading the rest.
CREATE INDEX executions_open ON executions (workspace_id, lease_expires_at)
    WHERE outcome IS NULL;

-- Denials are rolled up: a client that retries in a tight loop must not fill a disk.
CREATE TABLE denials (
    minute        timestamptz NOT NULL,
    workspace_id  text        NOT NULL,
    code          integer     NOT NULL,
    kind          text        NOT NULL CHECK (kind IN ('admission', 'runtime')),
    count         bigint      NOT NULL DEFAULT 0,
    last_decision jsonb,
    last_at       timestamptz,
    PRIMARY KEY (minute, workspace_id, code, kind)
);

CREATE INDEX denials_of_workspace ON denials (workspace_id, minute DESC);

-- Counts per epoch, kept as decisions are folded, so that a rebuild reads one row
-- and never counts millions.
CREATE TABLE period_usage (
    workspace_id text   NOT NULL,
    usage_epoch  text   NOT NULL,
    used         bigint NOT NULL DEFAULT 0,
    peak         bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (workspace_id, usage_epoch)
);

-- How far each stream is folded, moved in the transaction that folds.
CREATE TABLE ledger_applied (
    stream     text        NOT NULL,
    partition  integer     NOT NULL DEFAULT 0,
    sequence   bigint      NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (stream, partition)
);
