-- Snapshots: the fold of a session's log up to a version, so that a reader does not need the whole
-- log. There is at most one per session, and it may be deleted at any time.

CREATE TABLE {s}.snapshots (
    log     bigint PRIMARY KEY, -- sessions.log
    version bigint NOT NULL,
    append  text   COLLATE "C" NOT NULL, -- the append that ends at that version
    fold    bigint NOT NULL,    -- the version of the fold code
    body    bytea  NOT NULL
);
