-- Returns whether chunks end at these places, and the state of the stream.
-- KEYS: feed, chunks, marks. ARGV: places, as entry ids.
local answer = {}
for index, place in ipairs(ARGV) do answer[index] = text(#redis.call('XRANGE', KEYS[2], place, place)) end
return standing(answer, KEYS[1], KEYS[2], KEYS[3])
