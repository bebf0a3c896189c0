-- Reads appends of a session's own log.
-- KEYS: head, log. ARGV: after, limit, byte budget.
local found = redis.call('HMGET', KEYS[1], 'version', 'append', 'life', 'base_version', 'base')
if not found[1] then return { 'none' } end
local version = tonumber(ARGV[1])
if version < tonumber(found[4]) then return { 'shared', found[3], found[5] } end
local answer = { 'own', found[3], found[1], found[2] }
return read(answer, KEYS[2], version, '+', tonumber(ARGV[2]), tonumber(ARGV[3]))
