-- The tags of each session, for lists by tag. The column `sessions.tags` has the same tags; they
-- never change. The index has the order of a list.

CREATE TABLE {s}.session_tags (
    session    text   COLLATE "C" NOT NULL, -- sessions.session
    key        text   COLLATE "C" NOT NULL,
    value      text   COLLATE "C" NOT NULL,
    created_at bigint NOT NULL, -- sessions.created_at
    PRIMARY KEY (session, key)
);

CREATE INDEX session_tags_by_value ON {s}.session_tags (key, value, created_at, session);

-- Earlier versions did not limit tags. Longer ones do not fit into an index, and the server cannot
-- store a NUL character.
INSERT INTO {s}.session_tags (session, key, value, created_at)
SELECT session, tag.key, tag.value, created_at
FROM {s}.sessions CROSS JOIN json_each_text(
    CASE WHEN strpos(tags, '\u0000') = 0 THEN tags::json ELSE '{}' END) AS tag
WHERE octet_length(tag.key) <= 128 AND octet_length(tag.value) <= 2048;
