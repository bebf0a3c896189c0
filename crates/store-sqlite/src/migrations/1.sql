-- Sessions: one row each, the head; and their appends, one row each.

CREATE TABLE sessions (
    id          INTEGER PRIMARY KEY,
    session     TEXT    NOT NULL UNIQUE,
    -- What it was created as.
    agent       TEXT    NOT NULL,
    root        TEXT    NOT NULL,
    parent      TEXT,
    tags        TEXT    NOT NULL, -- a JSON object
    created_at  INTEGER NOT NULL, -- this and other times: milliseconds since 1970
    -- Where its log ends.
    version     INTEGER NOT NULL,
    append      TEXT    NOT NULL,
    updated_at  INTEGER NOT NULL,
    -- What the writer of the last append said.
    status      TEXT    NOT NULL,
    run         TEXT,
    runtime     TEXT    NOT NULL,
    pending     INTEGER NOT NULL,
    wake_at     INTEGER,
    lease_until INTEGER
) STRICT;

CREATE INDEX sessions_by_age ON sessions (created_at, session);
CREATE INDEX sessions_by_agent ON sessions (agent, created_at, session);
CREATE INDEX sessions_by_root ON sessions (root, created_at, session);
CREATE INDEX sessions_by_parent ON sessions (parent) WHERE parent IS NOT NULL;
CREATE INDEX sessions_by_lease ON sessions (coalesce(lease_until, 0)) WHERE run IS NOT NULL;
CREATE INDEX sessions_by_wake ON sessions (wake_at) WHERE wake_at IS NOT NULL;

-- Rows are only added, so they lie in the order in which they were written.
CREATE TABLE appends (
    key     INTEGER PRIMARY KEY,
    session INTEGER NOT NULL, -- sessions.id
    first   INTEGER NOT NULL,
    count   INTEGER NOT NULL,
    id      TEXT    NOT NULL,
    run     TEXT,
    schema  INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    body    BLOB    NOT NULL
) STRICT;

CREATE UNIQUE INDEX appends_in_order ON appends (session, first);

-- Streams: one row each; their chunks, one row per batch; and attempts that are open, or were
-- discarded while some of their chunks are still kept.

CREATE TABLE streams (
    id           INTEGER PRIMARY KEY,
    session      TEXT    NOT NULL UNIQUE,
    last_seq     INTEGER NOT NULL DEFAULT 0,
    trimmed      INTEGER NOT NULL DEFAULT 0, -- the last chunk that is not kept any more
    last_attempt INTEGER NOT NULL DEFAULT 0,
    marked       INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE chunks (
    stream   INTEGER NOT NULL, -- streams.id
    last_seq INTEGER NOT NULL,
    count    INTEGER NOT NULL,
    attempt  INTEGER,
    body     BLOB    NOT NULL, -- a JSON array
    PRIMARY KEY (stream, last_seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE attempts (
    stream       INTEGER NOT NULL, -- streams.id
    attempt      INTEGER NOT NULL,
    effect       TEXT    NOT NULL, -- JSON
    discarded_at INTEGER,          -- the stream's last chunk then; none while it is open
    PRIMARY KEY (stream, attempt)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX attempts_open ON attempts (stream, effect) WHERE discarded_at IS NULL;
