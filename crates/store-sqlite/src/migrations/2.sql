-- Forked logs, which share the beginning of another log. A log is identified by the `sessions.id`
-- of its session. That session may be deleted: the appends that other logs share remain, and so
-- does the row in this table.

CREATE TABLE forks (
    log     INTEGER PRIMARY KEY,
    base    INTEGER NOT NULL, -- the log that it was forked from, always an older one
    version INTEGER NOT NULL  -- the fork position, the end of one of its appends
) STRICT;

CREATE INDEX forks_by_base ON forks (base, version);
