-- What a workspace has instead of its plan's terms, and how long a quota lasts
-- inside a longer billing period.

-- +goose Up

-- One row is one limit or feature of one workspace that is not its plan's.
CREATE TABLE plan_overrides (
    workspace_id text        NOT NULL REFERENCES workspaces (id),
    -- A limit's name, or 'features.' and a feature's name.
    field        text        NOT NULL CHECK (field LIKE 'features._%' OR field IN (
        'max_executions', 'max_concurrent_executions', 'max_tasks_per_execution', 'max_execution_duration_minutes',
        'max_execution_payload_size_mb', 'max_storage_mb', 'max_executions_per_minute')),
    -- NULL is unlimited, as everywhere.
    value        bigint      CHECK (value >= 0),
    -- Nobody remembers a year later why somebody has more than they pay for.
    reason       text        NOT NULL CHECK (reason <> ''),
    -- When the plan's value holds again; NULL is never.
    expires_at   timestamptz CHECK (isfinite(expires_at)),
    set_at       timestamptz NOT NULL DEFAULT now(),
    set_by       text        NOT NULL,
    PRIMARY KEY (workspace_id, field)
);

-- The worker looks for what has expired; most overrides never do.
CREATE INDEX plan_overrides_expiring ON plan_overrides (expires_at) WHERE expires_at IS NOT NULL;

-- The one interval that is allowed today; NULL is as long as the billing period.
ALTER TABLE plan_revisions ADD COLUMN quota_interval text CHECK (quota_interval = 'month');

-- An apply to running periods looks for those whose plan has a newer revision, and
-- a diff for those on a plan.
CREATE INDEX subscriptions_open_of_plan ON subscriptions (plan_key, plan_revision) WHERE closed_at IS NULL;
