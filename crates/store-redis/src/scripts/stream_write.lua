-- Writes a batch. What it comes to is worked out first, and written in the end.
-- KEYS: feed, chunks, open, discarded, marks, channel.
-- ARGV: the stream's session, retention, time to live, and operations, each as its words one behind the other:
--   begin, session, effect, announcement of discards (before and after the attempts)
--   chunks, kind of the attempt's name, its name, parts
--   mark, session, version, settled, discarded, announcement of settled, of discarded, boundaries
-- Attempts are a count and numbers; parts are a count, and for each how many chunks it has and its text.
-- Boundaries are a count, and for each its version and parts.
local feed = redis.call('HMGET', KEYS[1], 'last', 'trimmed', 'attempt', 'marked', 'marked_seq')
for index = 1, 5 do feed[index] = tonumber(feed[index] or '0') end
local last, trimmed, attempt, marked, marked_seq = unpack(feed)
local own, retention = ARGV[1], tonumber(ARGV[2])

local open = {}
local opened, closed, discarded, marks = {}, {}, {}, {}
local stored = redis.call('HGETALL', KEYS[3])
for index = 1, #stored, 2 do open[stored[index]] = stored[index + 1] end

local begun, refused = {}, {}
local entries, entry, entry_first = {}, {}, 0

local place = 3
local function word()
  place = place + 1
  return ARGV[place]
end

local function numbers()
  local found = {}
  for index = 1, tonumber(word()) do found[index] = word() end
  return found
end

-- Every entry has the number of its last chunk; an entry of a stream may have only so many fields.
local function finish()
  if #entry > 0 then entries[#entries + 1] = { last, entry } end
  entry = {}
end

local function write(name, count, part)
  entry[#entry + 1] = name
  entry[#entry + 1] = part
  last = last + count
  if #entry >= 2000 then finish() end
end

local function parts(name, is_written)
  local count = 0
  for _ = 1, tonumber(word()) do
    local chunks, part = tonumber(word()), word()
    if is_written then write(name, chunks, part) end
    count = count + chunks
  end
  return count
end

-- Writes the boundaries beyond what is marked; says whether the mark goes beyond it.
local function boundaries(version, known)
  local advances = version > known
  for _ = 1, tonumber(word()) do
    local of = tonumber(word())
    parts('', advances and of > known)
  end
  return advances
end

-- Takes those that are open off the list of open attempts; returns them.
local function close(attempts)
  local found = {}
  for _, name in ipairs(attempts) do
    if open[name] then
      open[name] = nil
      closed[#closed + 1] = name
      found[#found + 1] = name
    end
  end
  return found
end

local function announce(attempts, before, behind)
  write('', 1, before .. table.concat(attempts, ',') .. behind)
end

local function discard(attempts, before, behind)
  attempts = close(attempts)
  if #attempts == 0 then return end
  for _, name in ipairs(attempts) do
    discarded[#discarded + 1] = text(last)
    discarded[#discarded + 1] = name
  end
  announce(attempts, before, behind)
end

local operations = {}

function operations.begin()
  local effect = word() .. '\0' .. word()
  local before, behind = word(), word()
  for name, it in pairs(open) do
    if string.sub(it, string.find(it, '\0', 1, true) + 1) == effect then
      discard({ name }, before, behind)
      break
    end
  end
  attempt = attempt + 1
  local name = text(attempt)
  open[name] = text(last) .. '\0' .. effect
  opened[name] = open[name]
  begun[#begun + 1] = name
end

function operations.chunks()
  local kind, name = word(), word()
  if kind == 'begun' then name = begun[tonumber(name) + 1] end
  local is_written = kind == 'none' or open[name] ~= nil
  if not is_written then refused[#refused + 1] = name end
  parts(kind == 'none' and '' or name, is_written)
end

function operations.mark()
  local session, version = word(), tonumber(word())
  local settled, gone = numbers(), numbers()
  settled = close(settled)
  local before, behind = word(), word()
  if #settled > 0 then announce(settled, before, behind) end
  before, behind = word(), word()
  discard(gone, before, behind)
  if session == own then
    if boundaries(version, marked) then marked, marked_seq = version, last end
  else
    local known = marks[session] or redis.call('HGET', KEYS[5], session) or '0'
    known = tonumber(string.match(known, '^%d+'))
    if boundaries(version, known) then marks[session] = text(version) .. ' ' .. text(last) end
  end
end

while place < #ARGV do operations[word()]() end
finish()

local answer = { text(last), text(#begun) }
for _, name in ipairs(begun) do answer[#answer + 1] = name end
for _, name in ipairs(refused) do answer[#answer + 1] = name end
local is_changed = #entries > 0 or #begun > 0 or #closed > 0 or next(marks) or marked > feed[4]
if not is_changed then return answer end

for _, it in ipairs(entries) do redis.call('XADD', KEYS[2], text(it[1]) .. '-0', unpack(it[2])) end
for name, it in pairs(opened) do
  if open[name] then redis.call('HSET', KEYS[3], name, it) end
end
for _, name in ipairs(closed) do redis.call('HDEL', KEYS[3], name) end
for index = 1, #discarded, 2 do redis.call('ZADD', KEYS[4], discarded[index], discarded[index + 1]) end
for session, it in pairs(marks) do redis.call('HSET', KEYS[5], session, it) end

-- What is no longer kept: whole entries, and some at a time.
if last - trimmed > retention + math.floor(retention / 8) then
  local gone = redis.call('XREVRANGE', KEYS[2], text(last - retention), '-', 'COUNT', 1)[1]
  if gone then
    trimmed = tonumber(string.match(gone[1], '^%d+'))
    redis.call('XTRIM', KEYS[2], 'MINID', text(trimmed + 1))
    redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', text(trimmed))
  end
end
redis.call('HSET', KEYS[1], 'last', text(last), 'trimmed', text(trimmed), 'attempt', text(attempt),
  'marked', text(marked), 'marked_seq', text(marked_seq))
local ends = text(after(clock(), ARGV[3]))
for index = 1, 5 do redis.call('PEXPIREAT', KEYS[index], ends) end
redis.call('PUBLISH', KEYS[6], '')
return answer
