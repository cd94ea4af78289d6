-- The application's own tables, beside Headroom's in one database: that is what lets a project
-- and the counter of projects be written in one transaction.

-- Two instances that start at once make the tables one after the other.
SELECT pg_advisory_xact_lock(hashtextextended('projects_app', 0));

CREATE SCHEMA IF NOT EXISTS projects_app;

CREATE TABLE IF NOT EXISTS projects_app.projects (
    workspace_id text        NOT NULL,
    id           text        NOT NULL,
    name         text        NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (workspace_id, id),
    UNIQUE (workspace_id, name)
);

-- A seat is a member, or an invitation that nobody has accepted yet.
CREATE TABLE IF NOT EXISTS projects_app.members (
    workspace_id text        NOT NULL,
    email        text        NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (workspace_id, email)
);

CREATE TABLE IF NOT EXISTS projects_app.invitations (
    workspace_id text        NOT NULL,
    email        text        NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (workspace_id, email)
);

CREATE TABLE IF NOT EXISTS projects_app.files (
    workspace_id text        NOT NULL,
    id           text        NOT NULL,
    name         text        NOT NULL,
    size_bytes   bigint      NOT NULL CHECK (size_bytes > 0),
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (workspace_id, id)
);
