-- Members of an index, newest first, each with its time.
-- KEYS: index. ARGV: how many; the member after which to go on, and its time.
local start = 0
if ARGV[2] then
  local rank = redis.call('ZREVRANK', KEYS[1], ARGV[2])
  start = rank and rank + 1 or redis.call('ZCOUNT', KEYS[1], '(' .. ARGV[3], '+inf')
end
return redis.call('ZREVRANGE', KEYS[1], start, start + ARGV[1] - 1, 'WITHSCORES')
