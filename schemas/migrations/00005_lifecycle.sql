-- What time alone does to a subscription: quotas that are shorter than a billing
-- period, trials, ends, and periods that are over without news of the next one.

-- +goose Up

ALTER TABLE subscriptions
    -- The billing period that the row's own period lies in: a row is as long as its
    -- quota, which may be a month of a year.
    ADD COLUMN billing_start timestamptz,
    ADD COLUMN billing_end   timestamptz,
    -- What becomes of a trial that is over; NULL where there is none, and for one
    -- of Stripe's, which is Stripe's business.
    ADD COLUMN after_trial   text CHECK (after_trial IN ('convert', 'expire', 'default')),
    -- The period waits for its payment, and the workspace is on the one before. It
    -- is set when the period begins and never again, so that one that was paid once
    -- is not taken away by a later invoice.
    ADD COLUMN held          boolean NOT NULL DEFAULT false,
    -- Since when the period is over without news of the next one.
    ADD COLUMN overdue_since timestamptz,
    -- When time alone changes something next; NULL is never. A row that is written
    -- without it is looked at once, and gets its own.
    ADD COLUMN due_at        timestamptz DEFAULT now();

UPDATE subscriptions SET billing_start = period_start, billing_end = period_end,
    due_at = CASE
        WHEN closed_at IS NOT NULL THEN NULL
        WHEN status = 'past_due' THEN now()
        ELSE least(period_end, cancel_at)
    END;

ALTER TABLE subscriptions
    ALTER COLUMN billing_start SET NOT NULL,
    ALTER COLUMN billing_end SET NOT NULL,
    ADD CONSTRAINT subscriptions_billing_contains_period
        CHECK (billing_start <= period_start AND period_end <= billing_end);

-- A row that another billing service writes need not know of quotas shorter than a
-- billing period: what it does not state is its own period.
-- +goose StatementBegin
CREATE FUNCTION bill_whole_period() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.billing_start := coalesce(NEW.billing_start, NEW.period_start);
    NEW.billing_end := coalesce(NEW.billing_end, NEW.period_end);
    RETURN NEW;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER subscriptions_bill_whole_period BEFORE INSERT ON subscriptions
    FOR EACH ROW WHEN (NEW.billing_start IS NULL OR NEW.billing_end IS NULL)
    EXECUTE FUNCTION bill_whole_period();

-- The worker asks once a second for the one that is due the longest. The index holds
-- an entry for each open subscription, and the question reads its beginning.
CREATE INDEX subscriptions_due ON subscriptions (due_at) WHERE closed_at IS NULL AND due_at IS NOT NULL;

-- How long a period goes on in these states is a setting, so they are looked at
-- when a worker starts. They are few.
CREATE INDEX subscriptions_in_grace ON subscriptions (id)
    WHERE closed_at IS NULL AND (status = 'past_due' OR held OR overdue_since IS NOT NULL);

-- Whom the source is to be asked about.
CREATE INDEX subscriptions_overdue ON subscriptions (overdue_since DESC)
    WHERE closed_at IS NULL AND overdue_since IS NOT NULL;
