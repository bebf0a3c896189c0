-- How the stream stands.
-- KEYS: feed, chunks, open, discarded, marks.
local feed = redis.call('HMGET', KEYS[1], 'last', 'trimmed', 'marked', 'marked_seq')
local answer = {}
for index = 1, 4 do answer[index] = feed[index] or '0' end
for _, key in ipairs({ KEYS[3], KEYS[5] }) do
  local found = redis.call('HGETALL', key)
  answer[#answer + 1] = text(#found / 2)
  for _, it in ipairs(found) do answer[#answer + 1] = it end
end
return answer
