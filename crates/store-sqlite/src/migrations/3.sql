-- Stream keys are never reused. Readers use them to distinguish a stream from the next one of the
-- same session.

CREATE TABLE numbered_streams (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
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

INSERT INTO numbered_streams SELECT * FROM streams;
DROP TABLE streams;
ALTER TABLE numbered_streams RENAME TO streams;
