-- Deletes a stream with its sequence numbers, if it still has this revision.
-- KEYS: feed, chunks, discarded, marks, channel.
-- ARGV: the revision, or 0 if there was no stream.
if (redis.call('HGET', KEYS[1], 'revision') or '0') ~= ARGV[1] then return { 'other' } end
forget(1)
return { 'forgotten' }
