-- Writes a session that is about to be created into the index of all; answers the time under which.
-- KEYS: sessions, schema. ARGV: member, not before, the schema.
local now = math.max(clock(), tonumber(ARGV[2]))
redis.call('SET', KEYS[2], ARGV[3], 'NX')
redis.call('ZADD', KEYS[1], text(now), ARGV[1])
return { text(now) }
