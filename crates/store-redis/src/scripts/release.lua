-- Records that a life does not share a log any more.
-- KEYS: head, log, shares, kept log, kept shares. ARGV: the log's life; the life that shared it.
if redis.call('HGET', KEYS[1], 'life') == ARGV[1] then
  redis.call('HDEL', KEYS[3], ARGV[2])
elseif redis.call('HDEL', KEYS[5], ARGV[2]) == 1 then
  shrink(KEYS[4], KEYS[5])
end
return {}
