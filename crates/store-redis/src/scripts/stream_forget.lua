-- Forgets a stream with its numbers.
-- KEYS: feed, chunks, discarded, marks, channel.
forget(1)
return {}
