-- What was made of a session's log up to a version, so that not all of it has to be read again: at most one for each
-- session. It may be deleted at any time.

CREATE TABLE snapshots (
    session INTEGER PRIMARY KEY, -- sessions.id
    version INTEGER NOT NULL,
    append  TEXT    NOT NULL, -- the append whose end that version is
    fold    INTEGER NOT NULL, -- which fold made it
    body    BLOB    NOT NULL
) STRICT;
