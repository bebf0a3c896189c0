-- Reads appends of a shared log, whether or not its session still exists.
-- KEYS: head, log, kept log. ARGV: life, after, up to, limit, byte budget.
local log = redis.call('HGET', KEYS[1], 'life') == ARGV[1] and KEYS[2] or KEYS[3]
return read({}, log, tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]))
