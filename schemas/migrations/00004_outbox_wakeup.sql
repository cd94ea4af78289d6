-- A relay hears of a new row when it is committed, instead of finding it at its
-- next look.

-- +goose Up

-- Once a statement: Postgres folds equal notifications of one transaction into one,
-- and sends it at the commit.
-- +goose StatementBegin
CREATE FUNCTION wake_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('headroom_outbox', '');
    RETURN NULL;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER outbox_wakes AFTER INSERT ON outbox
    FOR EACH STATEMENT EXECUTE FUNCTION wake_outbox();

-- A relay steps through the workspaces from the empty text on.
ALTER TABLE outbox ADD CONSTRAINT outbox_has_workspace CHECK (workspace_id <> '');

-- Rows are deleted by age of publication, oldest first.
CREATE INDEX outbox_published ON outbox (published_at) WHERE published_at IS NOT NULL;
