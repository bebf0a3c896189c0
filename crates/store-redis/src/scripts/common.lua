-- Milliseconds since 1970 by the server's clock: what all times of the store are. A script is one moment.
local moment
local function clock()
  if not moment then
    local time = redis.call('TIME')
    moment = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  end
  return moment
end

-- A number as text, without an exponent.
local function text(number)
  return string.format('%.0f', number)
end

-- Times are held at the largest number that Lua can count to.
local function after(now, duration)
  return math.min(now + tonumber(duration), 9007199254740991)
end

-- The last chunk of a stream that is not kept any more: all of them may have outlived their time.
local function kept_after(trimmed, last, chunks)
  if (last or '0') ~= (trimmed or '0') and redis.call('EXISTS', chunks) == 0 then return last end
  return trimmed or '0'
end

-- The fields of a head, in the order in which it is answered.
local HEAD = {
  'session', 'agent', 'root', 'parent', 'tags', 'created', 'life', 'base', 'version', 'append', 'updated',
  'lease', 'status', 'run', 'runtime', 'pending', 'wake', 'ran', 'woken'
}

-- The store's clock and the head; nothing if there is no such session.
local function head(key)
  local fields = redis.call('HMGET', key, unpack(HEAD))
  if not fields[1] then return {} end
  local answer = { text(clock()) }
  for index = 1, #HEAD do answer[index + 1] = fields[index] or '' end
  return answer
end
