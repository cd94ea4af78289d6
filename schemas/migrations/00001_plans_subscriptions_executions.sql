-- The first tables: the plan catalog, workspaces and their billing periods, and
-- the ledger that Redis can be rebuilt from. Limits are NULL where a plan has no
-- bound; 0 is a real limit.

-- +goose Up

-- One sequence for the whole catalog: an apply that changes anything takes the
-- next number, and every plan it changes gets that number. So a larger number is
-- always a later catalog, whichever plan it belongs to.
CREATE SEQUENCE catalog_revision_seq AS bigint;

CREATE TABLE plan_revisions (
    plan_key                       text        NOT NULL,
    revision                       bigint      NOT NULL CHECK (revision > 0),
    is_default                     boolean     NOT NULL DEFAULT false,
    rank                           integer     NOT NULL DEFAULT 0,
    max_executions                 bigint      CHECK (max_executions >= 0),
    max_concurrent_executions      bigint      CHECK (max_concurrent_executions >= 0),
    max_tasks_per_execution        bigint      CHECK (max_tasks_per_execution >= 0),
    max_execution_duration_minutes bigint      CHECK (max_execution_duration_minutes >= 0),
    max_execution_payload_size_mb  bigint      CHECK (max_execution_payload_size_mb >= 0),
    max_storage_mb                 bigint      CHECK (max_storage_mb >= 0),
    max_executions_per_minute      bigint      CHECK (max_executions_per_minute >= 0),
    features                       jsonb       NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(features) = 'object'),
    stripe_prices                  text[]      NOT NULL DEFAULT '{}',
    -- A plan that left the catalog gets a last revision with removed set, so that
    -- rows which refer to it keep their meaning.
    removed                        boolean     NOT NULL DEFAULT false,
    created_at                     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (plan_key, revision)
);

-- A period's snapshot names the revision it was taken from. If a revision could
-- change, what a customer was promised would change after the fact.
-- +goose StatementBegin
CREATE FUNCTION refuse_plan_revision_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'plan_revisions is immutable: % refused, apply the catalog to make a new revision', TG_OP
        USING ERRCODE = 'restrict_violation';
END
$$;
-- +goose StatementEnd

CREATE TRIGGER plan_revisions_immutable
    BEFORE UPDATE OR DELETE ON plan_revisions
    FOR EACH ROW EXECUTE FUNCTION refuse_plan_revision_change();

CREATE TRIGGER plan_revisions_no_truncate
    BEFORE TRUNCATE ON plan_revisions
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_plan_revision_change();

CREATE TABLE workspaces (
    id                     text        PRIMARY KEY,
    active_subscription_id uuid,
    -- Rises with anything that changes what a plan cache would hold.
    revision               bigint      NOT NULL DEFAULT 1,
    created_at             timestamptz NOT NULL DEFAULT now(),
    updated_at             timestamptz NOT NULL DEFAULT now()
);

-- One row is one billing period of one subscription. A renewal is a new row with
-- a new id, so usage resets by itself and nothing is ever deleted.
CREATE TABLE subscriptions (
    id             uuid        PRIMARY KEY,
    workspace_id   text        NOT NULL REFERENCES workspaces (id),
    source         text        NOT NULL CHECK (source IN ('stripe', 'enterprise', 'system')),
    source_id      text        NOT NULL,
    account        text        NOT NULL DEFAULT '',
    livemode       boolean     NOT NULL DEFAULT true,
    plan_key       text        NOT NULL,
    plan_revision  bigint      NOT NULL,
    -- The terms of the period, overrides applied: what decisions are measured against.
    snapshot       jsonb       NOT NULL,
    quantity       integer     NOT NULL DEFAULT 1,
    status         text        NOT NULL DEFAULT 'active',
    payment_state  text        NOT NULL DEFAULT 'none' CHECK (payment_state IN ('none', 'pending', 'paid', 'failed')),
    kind           text        NOT NULL CHECK (kind IN ('created', 'cycle', 'trial_end', 'anchor_reset', 'resume', 'plan_change', 'ended')),
    period_start   timestamptz NOT NULL,
    period_end     timestamptz NOT NULL,
    -- Periods with the same epoch share one quota counter.
    usage_epoch    text        NOT NULL,
    -- How long a period is ('month', 'year', '10d', '1h' …) and the day it is counted
    -- from, for periods that Headroom rolls itself; NULL where the source rolls them.
    interval       text,
    anchor         timestamptz,
    closed_at      timestamptz,
    previous_id    uuid        REFERENCES subscriptions (id),
    created_at     timestamptz NOT NULL DEFAULT now(),
    CHECK (period_start < period_end),
    FOREIGN KEY (plan_key, plan_revision) REFERENCES plan_revisions (plan_key, revision),
    UNIQUE (source, account, livemode, source_id, period_start)
);

-- Two writers that both roll the same subscription: the second one fails here
-- instead of leaving the workspace with two open periods.
CREATE UNIQUE INDEX subscriptions_one_open
    ON subscriptions (source, account, livemode, source_id) WHERE closed_at IS NULL;

-- A workspace's periods, newest first.
CREATE INDEX subscriptions_of_workspace ON subscriptions (workspace_id, period_start DESC);

ALTER TABLE workspaces ADD FOREIGN KEY (active_subscription_id) REFERENCES subscriptions (id);

-- The audit trail: an amendment of a running period, and what caused it.
CREATE TABLE subscription_changes (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    subscription_id uuid        NOT NULL REFERENCES subscriptions (id),
    at              timestamptz NOT NULL DEFAULT now(),
    field           text        NOT NULL,
    old_value       jsonb,
    new_value       jsonb,
    cause           text        NOT NULL
);

CREATE INDEX subscription_changes_of_subscription ON subscription_changes (subscription_id, id);
