-- The fencing token of the last watermark's writer, for the session itself and for its children.

ALTER TABLE streams ADD COLUMN fencing_token INTEGER NOT NULL DEFAULT 0;
ALTER TABLE marks ADD COLUMN fencing_token INTEGER NOT NULL DEFAULT 0;
