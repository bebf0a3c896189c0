-- Forgets a stream, but for the numbers that it goes on from.
-- KEYS: feed, chunks, open, discarded, marks, channel.
local last = redis.call('HGET', KEYS[1], 'last')
if not last then return {} end
redis.call('UNLINK', KEYS[2], KEYS[3], KEYS[4], KEYS[5])
redis.call('HSET', KEYS[1], 'trimmed', last, 'marked', '0', 'marked_seq', '0')
redis.call('PUBLISH', KEYS[6], '')
return {}
