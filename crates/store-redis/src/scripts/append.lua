-- Appends, if the log ends at the expected position and the guard holds.
-- KEYS: head, log.
-- ARGV: expected version, expected append, id, run, schema, count, body, lease change, lease
-- duration, guard, its time, tag of the index entries, whether these are written, usage or an empty
-- text to keep it; and, if there is a summary: status, run, runtime, pending, wake.
local found = redis.call('HMGET', KEYS[1], 'version', 'append', 'updated', 'lease', 'run', 'wake', 'ran', 'woken',
  'base_version', 'base_append', 'base', 'life')
if not found[1] then return { 'none' } end
local expected = tonumber(ARGV[1])
local version = tonumber(found[1])

if expected ~= version or ARGV[2] ~= found[2] then
  if expected >= version then return { 'lost' } end
  local base = tonumber(found[9])
  if expected < base then return { 'shared', found[11] } end
  if expected == base then
    if ARGV[2] ~= found[10] then return { 'lost' } end
  else
    local entry = covering(KEYS[2], expected)
    if not entry or last(entry) ~= expected or id(entry) ~= ARGV[2] then return { 'lost' } end
  end
  local next = beginning(KEYS[2], expected + 1)
  if next and id(next) == ARGV[3] then return { 'repeated', at(next) } end
  return { 'conflict', found[12] }
end

local now = math.max(clock(), tonumber(found[3]))
if ARGV[10] == 'not_after' and now > tonumber(ARGV[11]) then return { 'guard', '', text(now) } end
if ARGV[10] == 'lease_free' and found[4] ~= '' and now < tonumber(found[4]) then
  return { 'guard', found[4], text(now) }
end

-- Index entries are written before the state that they point to: they may be stale, but are never
-- missing.
local ran, woken = found[7], found[8]
local status, run, runtime, pending, wake = unpack(ARGV, 15)
if status then
  local runs = run ~= '' and run ~= found[5]
  local wakes = wake ~= '' and wake ~= found[6]
  if (runs or wakes) and ARGV[13] == '0' then return { 'index' } end
  if runs then ran = ARGV[12] elseif run == '' then ran = '' end
  if wakes then woken = ARGV[12] elseif wake == '' then woken = '' end
end

add(KEYS[2], version + 1, ARGV[6], ARGV[3], ARGV[4], ARGV[5], now, ARGV[7])
local head = { 'version', text(version + tonumber(ARGV[6])), 'append', ARGV[3], 'updated', text(now),
  'lease', lease(found[4], ARGV[8], ARGV[9], now) }
if status then
  for _, value in ipairs({ 'status', status, 'run', run, 'runtime', runtime, 'pending', pending, 'wake', wake,
    'ran', ran, 'woken', woken }) do
    head[#head + 1] = value
  end
end
if ARGV[14] ~= '' then
  head[#head + 1] = 'usage'
  head[#head + 1] = ARGV[14]
end
redis.call('HSET', KEYS[1], unpack(head))
return { 'appended', text(now), found[7], ran, found[8], woken }
