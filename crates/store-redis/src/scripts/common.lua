-- The server's clock in milliseconds since 1970, on which all times of the store are based. It is
-- constant within a script.
local moment
local function clock()
  if not moment then
    local time = redis.call('TIME')
    moment = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  end
  return moment
end

-- Formats a number without an exponent.
local function text(number)
  return string.format('%.0f', number)
end

-- Adds a duration to a time. The result is limited to the largest integer that Lua numbers
-- represent exactly.
local function after(now, duration)
  return math.min(now + tonumber(duration), 9007199254740991)
end

-- Returns the last chunk of a stream that is not kept any more. All chunks may have expired.
local function kept_after(trimmed, last, chunks)
  if (last or '0') ~= (trimmed or '0') and redis.call('EXISTS', chunks) == 0 then return last end
  return trimmed or '0'
end

-- The fields of a head, in the order of the reply.
local HEAD = {
  'session', 'agent', 'root', 'parent', 'tags', 'created', 'life', 'base', 'version', 'append', 'updated',
  'lease', 'status', 'run', 'runtime', 'pending', 'wake', 'ran', 'woken'
}

-- Returns the time and the head, or an empty table if the session does not exist.
local function head(key)
  local fields = redis.call('HMGET', key, unpack(HEAD))
  if not fields[1] then return {} end
  local answer = { text(clock()) }
  for index = 1, #HEAD do answer[index + 1] = fields[index] or '' end
  return answer
end
