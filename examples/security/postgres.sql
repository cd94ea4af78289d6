-- Three roles. Run it as a superuser in Headroom's database before the first migration;
-- give the passwords yourself (\password headroom_owner).

-- Migrates, and owns every table: HEADROOM_POSTGRES_URL of `headroom migrate`.
CREATE ROLE headroom_owner LOGIN;
-- Serves: HEADROOM_POSTGRES_URL of `headroom serve` and of the other commands. It changes no
-- table's shape, so that `headroom migrate` comes first at each upgrade.
CREATE ROLE headroom_serve LOGIN;
-- An application that counts what it has, by enforcement/usage.
CREATE ROLE headroom_app LOGIN;

REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE, CREATE ON SCHEMA public TO headroom_owner;
GRANT USAGE ON SCHEMA public TO headroom_serve, headroom_app;

-- Of what later migrations make as well.
ALTER DEFAULT PRIVILEGES FOR ROLE headroom_owner IN SCHEMA public
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO headroom_serve;
ALTER DEFAULT PRIVILEGES FOR ROLE headroom_owner IN SCHEMA public
    GRANT USAGE ON SEQUENCES TO headroom_serve;
