-- Whether chunks end at these places, and how the stream stands.
-- KEYS: feed, chunks, marks. ARGV: places, as the ids of entries.
local answer = {}
for index, place in ipairs(ARGV) do answer[index] = text(#redis.call('XRANGE', KEYS[2], place, place)) end
return standing(answer, KEYS[1], KEYS[2], KEYS[3])
