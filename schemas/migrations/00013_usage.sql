-- What workspaces have of each feature, and whose units those are. Headroom's tables
-- stand in the database of the application, beside its own, so that a counter and
-- what it counts are written in one transaction.

-- +goose Up

-- One row is one counter: what is checked and written in one statement. It serialises
-- who changes it, which is the point of it. The count is not a sum over usage_resources,
-- for whoever locks no row to count can be overtaken.
CREATE TABLE usage_counters (
    workspace_id text        NOT NULL,
    feature_key  text        NOT NULL,
    -- What names a flow's counter: periods with one epoch share it, so that a switch of
    -- the plan inside a period keeps what was used. Empty for a stock.
    usage_epoch  text        NOT NULL DEFAULT '',
    -- The start of the period in which a flow was first used in its epoch, for a person
    -- who reads the table; -infinity for a stock, which is never reset.
    period_start timestamptz NOT NULL DEFAULT '-infinity',
    count        bigint      NOT NULL CHECK (count >= 0),
    -- How much of the count belongs to the rows of usage_resources. Kept, because adding
    -- up thousands of them on each change would make a large workspace slow.
    registered   bigint      NOT NULL DEFAULT 0,
    updated_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workspace_id, feature_key, usage_epoch),
    CHECK (registered BETWEEN 0 AND count),
    CHECK ((usage_epoch = '') = (period_start = '-infinity'))
-- A hot row is written thousands of times between two vacuums. With room on its page its
-- new versions need no entry in the index.
) WITH (fillfactor = 50);

-- Which things the units of a stock are, so that a downgrade can lock the surplus. Whether
-- a row is locked is computed from its place in the order and never stored: a stored
-- answer would be wrong from the moment a plan changes until somebody has rewritten it.
-- Rows change under the lock of their counter's row only.
CREATE TABLE usage_resources (
    workspace_id text        NOT NULL,
    feature_key  text        NOT NULL,
    -- Compared byte by byte whatever the database's collation is, as all identifiers are.
    resource_id  text        COLLATE "C" NOT NULL,
    quantity     bigint      NOT NULL CHECK (quantity > 0),
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- The place that the workspace chose, from 1. The largest number means not chosen: with
    -- NULL the order could not be compared as one row value, which the index serves.
    keep_rank    integer     NOT NULL DEFAULT 2147483647,
    PRIMARY KEY (workspace_id, feature_key, resource_id)
);

-- The order in which resources stay unlocked, with all that a sum over a part of it reads.
CREATE UNIQUE INDEX usage_resources_in_order
    ON usage_resources (workspace_id, feature_key, keep_rank, created_at, resource_id) INCLUDE (quantity);

-- What was answered to a request that carried an idempotency key. The row is written
-- before anything is counted, in the same transaction: a second request with the key waits
-- at it for the first one's commit, and finds the answer.
CREATE TABLE usage_requests (
    -- Whose keys they are: two callers that pick the same key do not meet.
    scope        text        NOT NULL,
    workspace_id text        NOT NULL,
    key          text        NOT NULL,
    -- A hash of the request, to tell a repeated one from another under the same key.
    fingerprint  bytea       NOT NULL,
    -- NULL inside the transaction that writes the row, and never after its commit.
    answer       jsonb,
    created_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (scope, workspace_id, key)
);

-- Keys are forgotten by age.
CREATE INDEX usage_requests_by_age ON usage_requests (created_at);

-- Each consume on the default plan asks whether there is a newer one.
CREATE INDEX plan_revisions_default ON plan_revisions (revision) WHERE is_default;
