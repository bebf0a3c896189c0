-- Deletes a stream with its sequence numbers.
-- KEYS: feed, chunks, discarded, marks, channel.
forget(1)
return {}
