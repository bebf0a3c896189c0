-- Records that a life shares a log up to a position. Returns the time of that position, or nothing
-- if the log never ended there.
-- KEYS: head, log, shares, kept log, kept shares. ARGV: the log's life, version, append; the life
-- that shares it.
local log, shares = KEYS[2], KEYS[3]
if redis.call('HGET', KEYS[1], 'life') ~= ARGV[1] then log, shares = KEYS[4], KEYS[5] end
local entry = covering(log, ARGV[2])
if not entry or last(entry) ~= tonumber(ARGV[2]) or id(entry) ~= ARGV[3] then return {} end
redis.call('HSET', shares, ARGV[4], ARGV[2])
return { at(entry) }
