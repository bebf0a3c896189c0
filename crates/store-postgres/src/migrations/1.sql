-- Sessions: one row each, the head; and their appends, one row each. Times are milliseconds since 1970 by the server's
-- clock. Text that is compared or ordered is bytes to us, whatever the database's language.

CREATE TABLE {s}.sessions (
    session     text   COLLATE "C" PRIMARY KEY,
    -- Names the log; never used again, because what others share of a log outlives its session.
    log         bigint NOT NULL UNIQUE GENERATED ALWAYS AS IDENTITY,
    -- What it was created as.
    agent       text   COLLATE "C" NOT NULL,
    root        text   COLLATE "C" NOT NULL,
    parent      text   COLLATE "C",
    tags        text   NOT NULL, -- a JSON object
    created_at  bigint NOT NULL,
    -- Where its log ends.
    version     bigint NOT NULL,
    append      text   COLLATE "C" NOT NULL,
    updated_at  bigint NOT NULL,
    -- What the writer of the last append said.
    status      text   COLLATE "C" NOT NULL,
    run         text   COLLATE "C",
    runtime     text   COLLATE "C" NOT NULL,
    pending     bigint NOT NULL,
    wake_at     bigint,
    lease_until bigint
) WITH (fillfactor = 50); -- a step changes no indexed column, so the new row fits beside the old one

CREATE INDEX sessions_by_age ON {s}.sessions (created_at, session);
CREATE INDEX sessions_by_agent ON {s}.sessions (agent, created_at, session);
CREATE INDEX sessions_by_root ON {s}.sessions (root, created_at, session);
CREATE INDEX sessions_by_status ON {s}.sessions (status, created_at, session);
CREATE INDEX sessions_by_parent ON {s}.sessions (parent) WHERE parent IS NOT NULL;
-- Those with a lease that has run out are looked for among these. The lease is in no index: each renewal and most
-- appends would have to change it.
CREATE INDEX sessions_running ON {s}.sessions (created_at, session) WHERE run IS NOT NULL;
CREATE INDEX sessions_pending ON {s}.sessions (created_at, session) WHERE pending > 0;
CREATE INDEX sessions_by_wake ON {s}.sessions (wake_at) WHERE wake_at IS NOT NULL;

CREATE TABLE {s}.appends (
    log    bigint  NOT NULL,
    first  bigint  NOT NULL, -- the place of the first event
    count  bigint  NOT NULL,
    id     text    COLLATE "C" NOT NULL,
    run    text    COLLATE "C",
    schema integer NOT NULL,
    at     bigint  NOT NULL,
    body   bytea   NOT NULL,
    PRIMARY KEY (log, first)
);

-- Logs that begin with a part of another one, whose session may be gone.

CREATE TABLE {s}.forks (
    log     bigint PRIMARY KEY,
    base    bigint NOT NULL CHECK (base < log), -- the log that it begins with
    version bigint NOT NULL                     -- up to here, the end of one of its appends
);

CREATE INDEX forks_by_base ON {s}.forks (base, version);

-- Streams: one row each; their chunks, one row per batch; how far the logs of children that show in a stream are
-- marked; and attempts that were discarded while some of their chunks are still kept.

CREATE TABLE {s}.streams (
    session      text   COLLATE "C" PRIMARY KEY,
    id           bigint GENERATED ALWAYS AS IDENTITY,
    -- Another one with every batch: who writes says which one it goes on from, and knows its own again.
    revision     bigint NOT NULL DEFAULT 0,
    last_seq     bigint NOT NULL DEFAULT 0,
    trimmed      bigint NOT NULL DEFAULT 0, -- the last chunk that is not kept any more
    last_attempt bigint NOT NULL DEFAULT 0,
    marked       bigint NOT NULL DEFAULT 0, -- by the session itself; children's are in `marks`
    marked_seq   bigint NOT NULL DEFAULT 0, -- the last chunk then
    -- Attempts that were neither settled nor discarded: a JSON array, see `encode_open`.
    open         text   NOT NULL DEFAULT '[]'
) WITH (fillfactor = 50);

CREATE TABLE {s}.chunks (
    stream   bigint NOT NULL, -- streams.id
    last     bigint NOT NULL, -- the number of the last chunk
    count    bigint NOT NULL,
    revision bigint NOT NULL, -- the one that the batch made
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
    at_seq  bigint NOT NULL, -- the stream's last chunk then
    PRIMARY KEY (stream, attempt)
);
