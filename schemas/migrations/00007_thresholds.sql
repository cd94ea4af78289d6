-- Which thresholds of usage were reached, so that each is told of once.

-- +goose Up

-- The ledger writes a row in the transaction that folds what reached the threshold, and
-- the event beside it. Under another limit value the same usage is another fact:
-- after a plan change both thresholds may be told of again.
CREATE TABLE usage_thresholds (
    workspace_id text        NOT NULL,
    usage_epoch  text        NOT NULL,
    limit_name   text        NOT NULL,
    limit_value  bigint      NOT NULL CHECK (limit_value >= 0),
    percent      smallint    NOT NULL CHECK (percent BETWEEN 1 AND 100),
    -- What was used when it was seen, and the period that it was seen in.
    used         bigint      NOT NULL,
    period_start timestamptz NOT NULL,
    period_end   timestamptz NOT NULL,
    reached_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, usage_epoch, limit_name, limit_value, percent)
);

ALTER TABLE outbox DROP CONSTRAINT outbox_subject_kind_check;
ALTER TABLE outbox ADD CONSTRAINT outbox_subject_kind_check
    CHECK (subject_kind IN ('subscription.renewed', 'plan.invalidated', 'usage.threshold_reached'));
