-- Writes a batch, if the stream still has the revision that the batch is based on.
-- KEYS: feed, chunks, discarded, marks, channel.
-- ARGV: that revision, retention, time to live, the new revision, last chunk, last attempt, own
-- watermark, its chunk, its fencing token, open attempts, chunks, number of discarded attempts, for
-- each its number and the last chunk at that time, and for each child with a new watermark its
-- session and watermark.
local feed = redis.call('HMGET', KEYS[1], 'revision', 'trimmed', 'last')
if (feed[1] or '0') ~= ARGV[1] then return { 'other' } end

local revision, last, trimmed = ARGV[4], ARGV[5], kept_after(feed[2], feed[3], KEYS[2])
if not feed[1] then
  local time = redis.call('TIME')
  redis.call('HSET', KEYS[1], 'life', time[1] .. '.' .. time[2])
end
if ARGV[11] ~= '' then redis.call('XADD', KEYS[2], last .. '-' .. revision, 'b', ARGV[11]) end
local place = 12
for _ = 1, tonumber(ARGV[place]) do
  redis.call('ZADD', KEYS[3], ARGV[place + 2], ARGV[place + 1])
  place = place + 2
end
for index = place + 1, #ARGV, 2 do redis.call('HSET', KEYS[4], ARGV[index], ARGV[index + 1]) end

-- Trims chunks beyond the retention, in whole entries and several at a time.
local retention = tonumber(ARGV[2])
if tonumber(last) - tonumber(trimmed) > retention + math.floor(retention / 8) then
  local gone = redis.call('XREVRANGE', KEYS[2], text(tonumber(last) - retention), '-', 'COUNT', 1)[1]
  if gone then
    trimmed = string.match(gone[1], '^%d+')
    redis.call('XTRIM', KEYS[2], 'MINID', text(tonumber(trimmed) + 1))
    redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', trimmed)
  end
end
redis.call('HSET', KEYS[1], 'revision', revision, 'trimmed', trimmed, 'last', last, 'attempt', ARGV[6],
  'marked', ARGV[7], 'marked_seq', ARGV[8], 'fencing_token', ARGV[9], 'open', ARGV[10])
local ends = text(after(clock(), ARGV[3]))
for index = 2, 3 do redis.call('PEXPIREAT', KEYS[index], ends) end
redis.call('PUBLISH', KEYS[5], '')
return { 'written' }
