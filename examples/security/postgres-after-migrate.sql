-- Run it as headroom_owner after `headroom migrate`, at the first time and at each upgrade.

-- What is history stays as it was written.
REVOKE UPDATE, DELETE ON subscription_changes FROM headroom_serve;
REVOKE DELETE ON plan_revisions FROM headroom_serve;
REVOKE INSERT, UPDATE, DELETE ON headroom_migrations FROM headroom_serve;

-- An application reads what its workspaces may and writes what they have. It also puts the
-- news of a threshold into the outbox, and can read nothing back from there.
GRANT SELECT ON workspaces, subscriptions, plan_revisions, plan_overrides TO headroom_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON usage_counters, usage_resources, usage_requests, usage_thresholds TO headroom_app;
GRANT INSERT ON outbox TO headroom_app;
