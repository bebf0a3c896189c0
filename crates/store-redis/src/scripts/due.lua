-- Returns the members of an index whose time has passed.
-- KEYS: index. ARGV: limit; optionally the member after which to continue, and its time.
local now = clock()
local start = 0
if ARGV[2] then
  local rank = redis.call('ZRANK', KEYS[1], ARGV[2])
  start = rank and rank + 1 or redis.call('ZCOUNT', KEYS[1], '-inf', '(' .. ARGV[3])
end
local found = redis.call('ZRANGE', KEYS[1], start, start + ARGV[1] - 1, 'WITHSCORES')
local due = {}
for index = 1, #found, 2 do
  if tonumber(found[index + 1]) > now then break end
  due[#due + 1] = found[index]
  due[#due + 1] = found[index + 1]
end
return due
