-- Adds a session that is about to be created to the index of all sessions. Returns the time of the
-- entry.
-- KEYS: sessions, schema. ARGV: member, earliest time, schema version.
local now = math.max(clock(), tonumber(ARGV[2]))
redis.call('SET', KEYS[2], ARGV[3], 'NX')
redis.call('ZADD', KEYS[1], text(now), ARGV[1])
return { text(now) }
