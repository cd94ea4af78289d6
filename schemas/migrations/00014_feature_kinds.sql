-- How a feature is measured: by what there is, by what a period uses, or only on or off.

-- +goose Up

-- The kinds of those features that the plan names and that are not stocks, and of those
-- that it names without including them. Every feature of before is a stock.
ALTER TABLE plan_revisions ADD COLUMN feature_kinds jsonb NOT NULL DEFAULT '{}'
    CHECK (jsonb_typeof(feature_kinds) = 'object');

-- The kind of an overridden feature, for the plans that do not name it; NULL is a stock,
-- or a limit.
ALTER TABLE plan_overrides ADD COLUMN kind text CHECK (kind IN ('flow', 'boolean'));
