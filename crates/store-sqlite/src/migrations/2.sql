-- Logs that begin with a part of another one. A log is named by the `sessions.id` of its session,
-- which may be gone: what others share of it stays, and so does its row here.

CREATE TABLE forks (
    log     INTEGER PRIMARY KEY,
    base    INTEGER NOT NULL, -- the log that it begins with, always an older one
    version INTEGER NOT NULL  -- up to here, the end of one of its appends
) STRICT;

CREATE INDEX forks_by_base ON forks (base, version);
