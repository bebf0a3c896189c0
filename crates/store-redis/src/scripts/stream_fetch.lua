-- Returns the state of a stream and its chunks from a number on, or all chunks if the reader saw
-- another life of the stream.
-- KEYS: feed, chunks, discarded. ARGV: from, entry limit, byte budget, the life that the reader
-- saw.
local feed = redis.call('HMGET', KEYS[1], 'last', 'trimmed', 'life')
local last, trimmed = tonumber(feed[1] or '0'), tonumber(kept_after(feed[2], feed[1], KEYS[2]))
local life = feed[3] or ''
local is_new_stream = tonumber(ARGV[1]) > 1 and life ~= '' and ARGV[4] ~= '' and life ~= ARGV[4]
local from = is_new_stream and trimmed + 1 or math.max(tonumber(ARGV[1]), trimmed + 1)
local answer = { text(clock()), text(last), text(trimmed), '0', life, is_new_stream and '1' or '0' }
local discarded = redis.call('ZRANGEBYSCORE', KEYS[3], text(from), '+inf')
answer[#answer + 1] = text(#discarded)
for _, name in ipairs(discarded) do answer[#answer + 1] = name end
local limit, budget = tonumber(ARGV[2]), tonumber(ARGV[3])
while from <= last do
  local entries = redis.call('XRANGE', KEYS[2], text(from), '+', 'COUNT', 8)
  for _, entry in ipairs(entries) do
    if limit <= 0 or budget <= 0 then
      answer[4] = '1'
      return answer
    end
    local seq, body = string.match(entry[1], '^%d+'), entry[2][2]
    answer[#answer + 1] = seq
    answer[#answer + 1] = body
    budget = budget - #body
    from = tonumber(seq) + 1
    limit = limit - 1
  end
  if #entries < 8 then break end
end
return answer
