-- Returns members of an index with their times, newest first.
-- KEYS: index. ARGV: limit; optionally the member after which to continue, and its time.
local start = 0
if ARGV[2] then
  local rank = redis.call('ZREVRANK', KEYS[1], ARGV[2])
  start = rank and rank + 1 or redis.call('ZCOUNT', KEYS[1], '(' .. ARGV[3], '+inf')
end
return redis.call('ZREVRANGE', KEYS[1], start, start + ARGV[1] - 1, 'WITHSCORES')
