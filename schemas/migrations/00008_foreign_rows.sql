-- Subscriptions that somebody else writes: another billing service, or the version of
-- Headroom before billing periods, which still runs while instances are replaced.

-- +goose Up

-- A limit of a snapshot as a number; NULL where it is unlimited, and where it is no whole
-- number of 64 bits, written like 100.0 or not. A cast would end the statement of
-- whoever looks, and one row would stop a ledger that has nothing to do with it.
CREATE FUNCTION limit_value(snapshot jsonb, name text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN jsonb_typeof(snapshot #> ARRAY['limits', name, 'value']) <> 'number' THEN NULL
        WHEN (snapshot #>> ARRAY['limits', name, 'value'])::numeric NOT BETWEEN 0 AND 9223372036854775807 THEN NULL
        WHEN (snapshot #>> ARRAY['limits', name, 'value'])::numeric % 1 <> 0 THEN NULL
        ELSE (snapshot #>> ARRAY['limits', name, 'value'])::numeric::bigint END
$$;

-- Who moves a period's end and does not know of billing periods moves both: where the
-- quota lasts as long as the billing period they end together, and no period
-- goes beyond its billing period. When the row is due is found out again.
-- +goose StatementBegin
CREATE FUNCTION bill_moved_period() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.billing_end := NEW.period_end;
    IF NEW.due_at IS NOT DISTINCT FROM OLD.due_at THEN
        NEW.due_at := now();
    END IF;
    RETURN NEW;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER subscriptions_bill_moved_period BEFORE UPDATE OF period_end ON subscriptions
    FOR EACH ROW WHEN (NEW.period_end <> OLD.period_end AND NEW.billing_end = OLD.billing_end
        AND (NEW.period_end > NEW.billing_end
            OR OLD.period_end = OLD.billing_end AND NEW.snapshot ->> 'quota_interval' IS NULL))
    EXECUTE FUNCTION bill_moved_period();
