-- Keys of streams are never used again: a reader tells a stream from the next one of the same session by them.

CREATE TABLE numbered_streams (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
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

INSERT INTO numbered_streams SELECT * FROM streams;
DROP TABLE streams;
ALTER TABLE numbered_streams RENAME TO streams;
