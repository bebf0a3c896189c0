-- Chunks from a number on, first how the stream stands.
-- KEYS: feed, chunks, open, discarded. ARGV: from, how many entries at most, budget of bytes.
local feed = redis.call('HMGET', KEYS[1], 'last', 'trimmed')
local last, trimmed = tonumber(feed[1] or '0'), tonumber(feed[2] or '0')
local from = tonumber(ARGV[1])
local missing = from <= trimmed and trimmed or (from > last + 1 and last)
if missing then from = missing + 1 end
local answer = { text(clock()), text(last), missing and text(missing) or '', '0' }
local discarded = redis.call('ZRANGEBYSCORE', KEYS[4], text(from), '+inf')
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
    local seq, fields = string.match(entry[1], '^%d+'), entry[2]
    answer[#answer + 1] = seq
    answer[#answer + 1] = text(#fields / 2)
    for _, field in ipairs(fields) do
      answer[#answer + 1] = field
      budget = budget - #field
    end
    from = tonumber(seq) + 1
    limit = limit - 1
  end
  if #entries < 8 then break end
end
return answer
