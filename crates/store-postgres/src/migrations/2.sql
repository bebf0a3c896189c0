-- What was made of a session's log up to a version, so that not all of it has to be read again: at most one for each
-- session. It may be deleted at any time.

CREATE TABLE {s}.snapshots (
    log     bigint PRIMARY KEY, -- sessions.log
    version bigint NOT NULL,
    append  text   COLLATE "C" NOT NULL, -- the append whose end that version is
    fold    bigint NOT NULL,    -- which fold made it
    body    bytea  NOT NULL
);
