-- The usage of the session itself, as of its last append with usage: a JSON object. NULL if no
-- append had usage.

ALTER TABLE sessions ADD COLUMN usage TEXT;
