-- The fencing token of the last watermark's writer, for the session itself and for its children.

ALTER TABLE {s}.streams ADD COLUMN fencing_token bigint NOT NULL DEFAULT 0;
ALTER TABLE {s}.marks ADD COLUMN fencing_token bigint NOT NULL DEFAULT 0;
