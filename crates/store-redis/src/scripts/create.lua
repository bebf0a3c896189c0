-- Creates a session with its first append, and with a base if it is a fork.
-- KEYS: head, log.
-- ARGV: life, session, agent, root, parent, tags, time, base, base's version, base's append; id,
-- run, schema, count, body, lease change, lease duration, status, run, runtime, pending, wake; ran,
-- woken; usage, or an empty text if there is none.
local life = redis.call('HGET', KEYS[1], 'life')
if life then
  local found = redis.call('HMGET', KEYS[1], 'base_version', 'base_append')
  local entry = beginning(KEYS[2], tonumber(found[1]) + 1)
  return { 'exists', found[1], found[2], entry and id(entry) or '', entry and at(entry) or '0' }
end
-- Index entries without a session are removed after twice this time.
local now = tonumber(ARGV[7])
if clock() - now > 300000 then return { 'late' } end
local version = tonumber(ARGV[9])
add(KEYS[2], version + 1, ARGV[14], ARGV[11], ARGV[12], ARGV[13], now, ARGV[15])
redis.call('HSET', KEYS[1],
  'life', ARGV[1], 'session', ARGV[2], 'agent', ARGV[3], 'root', ARGV[4], 'parent', ARGV[5], 'tags', ARGV[6],
  'created', text(now), 'base', ARGV[8], 'base_version', ARGV[9], 'base_append', ARGV[10],
  'version', text(version + tonumber(ARGV[14])), 'append', ARGV[11], 'updated', text(now),
  'lease', lease('', ARGV[16], ARGV[17], now),
  'status', ARGV[18], 'run', ARGV[19], 'runtime', ARGV[20], 'pending', ARGV[21], 'wake', ARGV[22],
  'ran', ARGV[23], 'woken', ARGV[24])
if ARGV[25] ~= '' then redis.call('HSET', KEYS[1], 'usage', ARGV[25]) end
return { 'created', text(now) }
