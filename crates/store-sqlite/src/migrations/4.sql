-- Snapshots: the fold of a session's log up to a version, so that a reader does not need the whole
-- log. There is at most one per session, and it may be deleted at any time.

CREATE TABLE snapshots (
    session INTEGER PRIMARY KEY, -- sessions.id
    version INTEGER NOT NULL,
    append  TEXT    NOT NULL, -- the append that ends at that version
    fold    INTEGER NOT NULL, -- the version of the fold code
    body    BLOB    NOT NULL
) STRICT;
