-- Sessions: one row per session, its head; and one row per append. Times are milliseconds since
-- 1970 by the server's clock. Text that is compared or ordered uses the "C" collation, whatever the
-- database's locale.

CREATE TABLE {s}.sessions (
    session     text   COLLATE "C" PRIMARY KEY,
    -- The key of the log. It is never reused, because the appends that other logs share outlive the
    -- session.
    log         bigint NOT NULL UNIQUE GENERATED ALWAYS AS IDENTITY,
    -- The properties from creation.
    agent       text   COLLATE "C" NOT NULL,
    root        text   COLLATE "C" NOT NULL,
    parent      text   COLLATE "C",
    tags        text   NOT NULL, -- a JSON object
    created_at  bigint NOT NULL,
    -- The end of the session's log.
    version     bigint NOT NULL,
    append      text   COLLATE "C" NOT NULL,
    updated_at  bigint NOT NULL,
    -- The summary of the last append that had one.
    status      text   COLLATE "C" NOT NULL,
    run         text   COLLATE "C",
    runtime     text   COLLATE "C" NOT NULL,
    pending     bigint NOT NULL,
    wake_at     bigint,
    lease_until bigint
) WITH (fillfactor = 50); -- a step changes no indexed column, so the new row version fits on the same page

CREATE INDEX sessions_by_age ON {s}.sessions (created_at, session);
CREATE INDEX sessions_by_agent ON {s}.sessions (agent, created_at, session);
CREATE INDEX sessions_by_root ON {s}.sessions (root, created_at, session);
CREATE INDEX sessions_by_status ON {s}.sessions (status, created_at, session);
CREATE INDEX sessions_by_parent ON {s}.sessions (parent) WHERE parent IS NOT NULL;
-- Queries for expired leases scan this index of sessions with a run. The lease is not part of an
-- index, because each renewal and most appends would have to update that index.
CREATE INDEX sessions_running ON {s}.sessions (created_at, session) WHERE run IS NOT NULL;
CREATE INDEX sessions_pending ON {s}.sessions (created_at, session) WHERE pending > 0;
CREATE INDEX sessions_by_wake ON {s}.sessions (wake_at) WHERE wake_at IS NOT NULL;

CREATE TABLE {s}.appends (
    log    bigint  NOT NULL,
    first  bigint  NOT NULL, -- the version of the first event
    count  bigint  NOT NULL,
    id     text    COLLATE "C" NOT NULL,
    run    text    COLLATE "C",
    schema integer NOT NULL,
    at     bigint  NOT NULL,
    body   bytea   NOT NULL,
    PRIMARY KEY (log, first)
);

-- Forked logs, which share the beginning of another log. The session of that log may be deleted.

CREATE TABLE {s}.forks (
    log     bigint PRIMARY KEY,
    base    bigint NOT NULL CHECK (base < log), -- the log that it was forked from
    version bigint NOT NULL                     -- the fork position, the end of one of its appends
);

CREATE INDEX forks_by_base ON {s}.forks (base, version);

-- Streams: one row per stream; one row of chunks per batch; the watermarks of child sessions whose
-- chunks appear in a stream; and one row per discarded attempt while some of its chunks are still
-- kept.

CREATE TABLE {s}.streams (
    session      text   COLLATE "C" PRIMARY KEY,
    id           bigint GENERATED ALWAYS AS IDENTITY,
    -- Changes with every batch. A writer names the revision that its batch follows, and recognizes
    -- its own revisions.
    revision     bigint NOT NULL DEFAULT 0,
    last_seq     bigint NOT NULL DEFAULT 0,
    trimmed      bigint NOT NULL DEFAULT 0, -- the last chunk that was trimmed
    last_attempt bigint NOT NULL DEFAULT 0,
    marked       bigint NOT NULL DEFAULT 0, -- watermark of the session itself; those of children are in `marks`
    marked_seq   bigint NOT NULL DEFAULT 0, -- the last chunk at that watermark
    -- Attempts that are neither settled nor discarded: a JSON array, see `encode_open`.
    open         text   NOT NULL DEFAULT '[]'
) WITH (fillfactor = 50);

CREATE TABLE {s}.chunks (
    stream   bigint NOT NULL, -- streams.id
    last     bigint NOT NULL, -- the sequence number of the last chunk
    count    bigint NOT NULL,
    revision bigint NOT NULL, -- the stream's revision after the batch
    body     bytea  NOT NULL, -- a JSON array of groups of chunks, see `Encoded`
    PRIMARY KEY (stream, last)
);

CREATE TABLE {s}.marks (
    stream  bigint NOT NULL, -- streams.id
    session text   COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    seq     bigint NOT NULL,
    PRIMARY KEY (stream, session)
);

CREATE TABLE {s}.discarded (
    stream  bigint NOT NULL, -- streams.id
    attempt bigint NOT NULL,
    at_seq  bigint NOT NULL, -- the stream's last chunk when it was discarded
    PRIMARY KEY (stream, attempt)
);
