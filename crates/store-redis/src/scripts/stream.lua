-- Adds the state of a stream to a reply: its own fields and then the watermarks of children. Adds
-- nothing if there is no stream.
local FEED = { 'revision', 'trimmed', 'last', 'attempt', 'marked', 'marked_seq', 'fencing_token', 'open' }

local function standing(answer, feed, chunks, marks)
  local fields = redis.call('HMGET', feed, unpack(FEED))
  if not fields[1] then return answer end
  fields[2] = kept_after(fields[2], fields[3], chunks)
  for index = 1, #FEED do answer[#answer + 1] = fields[index] or '0' end
  for _, it in ipairs(redis.call('HGETALL', marks)) do answer[#answer + 1] = it end
  return answer
end
