-- Saves a snapshot, unless a newer one is saved or the log does not reach its version.
-- KEYS: head, snapshot. ARGV: version, append, fold, body.
local version = tonumber(ARGV[1])
local found = redis.call('HMGET', KEYS[1], 'version', 'life')
if not found[1] or tonumber(found[1]) < version then return {} end
local kept = redis.call('HMGET', KEYS[2], 'version', 'life')
if kept[1] and kept[2] == found[2] and tonumber(kept[1]) > version then return {} end
redis.call('HSET', KEYS[2], 'life', found[2], 'version', ARGV[1], 'append', ARGV[2], 'fold', ARGV[3], 'body', ARGV[4])
return {}
