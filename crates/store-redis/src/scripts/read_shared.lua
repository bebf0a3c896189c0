-- Appends of a log that others share, whether its session is still there or not.
-- KEYS: head, log, kept log. ARGV: life, after, up to, limit, budget of bytes.
local log = redis.call('HGET', KEYS[1], 'life') == ARGV[1] and KEYS[2] or KEYS[3]
return read({}, log, tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]))
