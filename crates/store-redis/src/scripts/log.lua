-- An append is an entry of a Redis stream whose id is the version of its first event.
local FIELDS = 6

local function add(key, first, count, id, run, schema, at, body)
  redis.call('XADD', key, text(first) .. '-0', 'c', count, 'i', id, 'r', run, 's', schema, 't', text(at), 'b', body)
end

local function first(entry)
  return tonumber(string.match(entry[1], '^(%d+)-'))
end

-- Returns the version of the last event of an append.
local function last(entry)
  return first(entry) + tonumber(entry[2][2]) - 1
end

local function id(entry) return entry[2][4] end
local function at(entry) return entry[2][10] end

-- Returns the append that contains this event, if there is one.
local function covering(key, version)
  return redis.call('XREVRANGE', key, text(version), '-', 'COUNT', 1)[1]
end

-- Returns the append that begins with this event, if there is one.
local function beginning(key, version)
  return redis.call('XRANGE', key, text(version), text(version), 'COUNT', 1)[1]
end

-- Adds the appends after a version to a reply: the end and the time of the preceding append,
-- whether the limits omitted any appends, and the appends.
local function read(answer, key, version, upto, limit, budget)
  local before = version > 0 and covering(key, version)
  if before then
    answer[#answer + 1] = text(last(before))
    answer[#answer + 1] = id(before)
    answer[#answer + 1] = at(before)
  else
    answer[#answer + 1] = text(version)
    answer[#answer + 1] = ''
    answer[#answer + 1] = '0'
  end
  local more = #answer + 1
  answer[more] = '0'
  local from, count = text(version + 1), 1
  while limit > 0 do
    local asked = math.min(limit, count)
    local entries = redis.call('XRANGE', key, from, upto, 'COUNT', asked)
    for _, entry in ipairs(entries) do
      if budget <= 0 then
        answer[more] = '1'
        return answer
      end
      answer[#answer + 1] = text(first(entry))
      for field = 2, 2 * FIELDS, 2 do answer[#answer + 1] = entry[2][field] or '' end
      from = text(first(entry) + 1)
      limit = limit - 1
      budget = budget - #entry[2][2 * FIELDS]
    end
    if #entries < asked then return answer end
    -- Read few entries at first, because their size is unknown.
    count = math.min(2 * count, 128)
  end
  answer[more] = '1'
  return answer
end

-- Deletes the appends that begin after a version.
local function cut(key, version)
  while true do
    local entries = redis.call('XRANGE', key, text(version + 1), '+', 'COUNT', 16)
    if #entries == 0 then return end
    local ids = {}
    for index, entry in ipairs(entries) do ids[index] = entry[1] end
    redis.call('XDEL', key, unpack(ids))
  end
end

-- Deletes the appends of a deleted life's log that no other log shares any more.
local function shrink(log, shares)
  local longest = 0
  for _, version in ipairs(redis.call('HVALS', shares)) do longest = math.max(longest, tonumber(version)) end
  if longest == 0 then
    redis.call('UNLINK', log, shares)
  else
    cut(log, longest)
  end
end

-- Returns the lease expiry after an append, or an empty text if there is no lease.
local function lease(before, change, duration, now)
  if change == 'take' then return text(after(now, duration)) end
  return change == 'keep' and before or ''
end
