-- The usage of the session itself, as its appends said last: a JSON object. None if no append has said any.

ALTER TABLE {s}.sessions ADD COLUMN usage text;
