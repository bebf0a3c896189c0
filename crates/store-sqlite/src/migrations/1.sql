-- Sessions: one row per session, its head; and one row per append.

CREATE TABLE sessions (
    id          INTEGER PRIMARY KEY,
    session     TEXT    NOT NULL UNIQUE,
    -- The properties from creation.
    agent       TEXT    NOT NULL,
    root        TEXT    NOT NULL,
    parent      TEXT,
    tags        TEXT    NOT NULL, -- a JSON object
    created_at  INTEGER NOT NULL, -- this and other times: milliseconds since 1970
    -- The end of the session's log.
    version     INTEGER NOT NULL,
    append      TEXT    NOT NULL,
    updated_at  INTEGER NOT NULL,
    -- The summary of the last append that had one.
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
-- Queries for expired leases scan this index of sessions with a run. The lease is not part of an
-- index, because each renewal and most appends would have to update that index.
CREATE INDEX sessions_running ON sessions (created_at, session) WHERE run IS NOT NULL;
CREATE INDEX sessions_pending ON sessions (created_at, session) WHERE pending > 0;
CREATE INDEX sessions_by_wake ON sessions (wake_at) WHERE wake_at IS NOT NULL;

CREATE TABLE appends (
    key     INTEGER PRIMARY KEY, -- sessions.id * 2^32 + the version of the first event
    count   INTEGER NOT NULL,
    id      TEXT    NOT NULL,
    run     TEXT,
    schema  INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    body    BLOB    NOT NULL
) STRICT;

-- Streams: one row per stream; one row of chunks per batch; and one row per discarded attempt while
-- some of its chunks are still kept.

CREATE TABLE streams (
    id           INTEGER PRIMARY KEY,
    session      TEXT    NOT NULL UNIQUE,
    last_seq     INTEGER NOT NULL DEFAULT 0,
    trimmed      INTEGER NOT NULL DEFAULT 0, -- the last chunk that was trimmed
    last_attempt INTEGER NOT NULL DEFAULT 0,
    marked       INTEGER NOT NULL DEFAULT 0, -- watermark of the session itself; those of children are in `marks`
    marked_seq   INTEGER NOT NULL DEFAULT 0, -- the last chunk at that watermark
    -- Attempts that are neither settled nor discarded: a JSON array of numbers, effects, and child
    -- sessions.
    open         TEXT    NOT NULL DEFAULT '[]'
) STRICT;

CREATE TABLE chunks (
    key   INTEGER PRIMARY KEY, -- streams.id * 2^32 + the sequence number of the last chunk
    count INTEGER NOT NULL,
    body  BLOB    NOT NULL     -- a JSON array of groups of chunks, see body.rs
) STRICT;

-- The watermarks of child sessions whose chunks appear in a stream.

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
    at_seq  INTEGER NOT NULL, -- the stream's last chunk when it was discarded
    PRIMARY KEY (stream, attempt)
) STRICT, WITHOUT ROWID;
