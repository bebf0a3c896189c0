-- Resets a stream, but keeps the sequence numbers that it continues from.
-- KEYS: feed, chunks, discarded, marks, channel.
local last = redis.call('HGET', KEYS[1], 'last')
if not last then return {} end
redis.call('UNLINK', KEYS[2], KEYS[3], KEYS[4])
local time = redis.call('TIME')
redis.call('HSET', KEYS[1], 'revision', text(tonumber(time[1]) * 1000000 + tonumber(time[2])), 'trimmed', last,
  'marked', '0', 'marked_seq', '0', 'fencing_token', '0', 'open', '[]')
redis.call('PUBLISH', KEYS[5], '')
return {}
