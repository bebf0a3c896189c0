-- The tags of each session, for lists by tag. The column `sessions.tags` has the same tags; they
-- never change. The index has the order of a list.

CREATE TABLE session_tags (
    session    TEXT    NOT NULL, -- sessions.session
    key        TEXT    NOT NULL,
    value      TEXT    NOT NULL,
    created_at INTEGER NOT NULL, -- sessions.created_at
    PRIMARY KEY (session, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX session_tags_by_value ON session_tags (key, value, created_at, session);

INSERT INTO session_tags (session, key, value, created_at)
SELECT session, tag.key, tag.value, created_at
FROM sessions, json_each(CASE WHEN json_valid(tags) THEN tags ELSE '{}' END) AS tag;
