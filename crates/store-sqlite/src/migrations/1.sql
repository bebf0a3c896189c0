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
-- Those with a lease that has run out are looked for among these. The lease is in no index: each
-- renewal and most appends would have to change it.
CREATE INDEX sessions_running ON sessions (created_at, session) WHERE run IS NOT NULL;
CREATE INDEX sessions_pending ON sessions (created_at, session) WHERE pending > 0;
CREATE INDEX sessions_by_wake ON sessions (wake_at) WHERE wake_at IS NOT NULL;

CREATE TABLE appends (
    key     INTEGER PRIMARY KEY, -- sessions.id * 2^32 + the place of the first event
    count   INTEGER NOT NULL,
    id      TEXT    NOT NULL,
    run     TEXT,
    schema  INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    body    BLOB    NOT NULL
) STRICT;

-- Streams: one row each; their chunks, one row per batch; and attempts that were discarded while
-- some of their chunks are still kept.

CREATE TABLE streams (
    id           INTEGER PRIMARY KEY,
    session      TEXT    NOT NULL UNIQUE,
    last_seq     INTEGER NOT NULL DEFAULT 0,
    trimmed      INTEGER NOT NULL DEFAULT 0, -- the last chunk that is not kept any more
    last_attempt INTEGER NOT NULL DEFAULT 0,
    marked       INTEGER NOT NULL DEFAULT 0, -- by the session itself; children's are in `marks`
    marked_seq   INTEGER NOT NULL DEFAULT 0, -- the last chunk then
    -- Attempts that were neither settled nor discarded: a JSON array of numbers, effects, and the
    -- sessions of children.
    open         TEXT    NOT NULL DEFAULT '[]'
) STRICT;

CREATE TABLE chunks (
    key   INTEGER PRIMARY KEY, -- streams.id * 2^32 + the number of the last chunk
    count INTEGER NOT NULL,
    body  BLOB    NOT NULL     -- a JSON array of groups of chunks, see body.rs
) STRICT;

-- How far the logs of children that show in a stream are marked.

CREATE TABLE marks (
    stream  INTEGER NOT NULL, -- streams.id
    session TEXT    NOT NULL,
    version INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    PRIMARY KEY (stream, session)
) STRICT, WITHOUT ROWID;

CREATE TABLE discarded (
    stream  INTEGER NOT NULL, -- streams.id
    attempt INTEGER NOT NULL,
    at_seq  INTEGER NOT NULL, -- the stream's last chunk then
    PRIMARY KEY (stream, attempt)
) STRICT, WITHOUT ROWID;
