-- What the watchdog looks for, so that it finds it without reading what is not
-- due: executions that ran too long, and leases that ended without a completion.

-- +goose Up

-- duration_due_at is when the plan's longest duration of this execution passes; NULL
-- where there is none, and once its engine was told to stop.
-- leased_until is the end of the lease as far as it is known here: progress moves it in
-- Redis alone, and the watchdog learns of that when it looks. lease_expires_at stays
-- what the decision said.
-- leaked_at is when the lease was found to have ended; a completion that comes after
-- all closes the row, and it is no leak any more.
ALTER TABLE executions
    ADD COLUMN duration_due_at timestamptz,
    ADD COLUMN leased_until    timestamptz,
    ADD COLUMN leaked_at       timestamptz;

-- An execution whose lease has ended is not told to stop: nobody has heard of it for
-- longer than it might have run. A duration of a hundred years is none.
UPDATE executions SET
    leased_until = lease_expires_at,
    duration_due_at = CASE WHEN lease_expires_at > now()
        AND (limits->'max_execution_duration_minutes'->>'value')::bigint < 52560000
        THEN admitted_at + (limits->'max_execution_duration_minutes'->>'value')::bigint * interval '1 minute' END
WHERE outcome IS NULL AND decided;

CREATE INDEX executions_overdue ON executions (duration_due_at)
    WHERE outcome IS NULL AND duration_due_at IS NOT NULL;

CREATE INDEX executions_leased ON executions (leased_until)
    WHERE outcome IS NULL AND leased_until IS NOT NULL AND leaked_at IS NULL;

CREATE INDEX executions_leaked ON executions (workspace_id, leaked_at DESC)
    WHERE outcome IS NULL AND leaked_at IS NOT NULL;
