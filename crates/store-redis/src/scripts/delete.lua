-- Deletes a life of a session with its stream, except for appends that other logs share.
-- KEYS: head, log, shares, kept log, kept shares, snapshot; those of the stream, with the channel
-- last.
-- ARGV: life; optionally the version that the session must have, which then must not be leased
-- either.
local found = redis.call('HMGET', KEYS[1], 'life', 'version', 'lease')
if found[1] ~= ARGV[1] then return { 'gone' } end
if ARGV[2] and (found[2] ~= ARGV[2] or found[3] ~= '' and tonumber(found[3]) > clock()) then return { 'changed' } end
redis.call('DEL', KEYS[1])
redis.call('UNLINK', KEYS[6])
if redis.call('EXISTS', KEYS[3]) == 1 then
  redis.call('RENAME', KEYS[2], KEYS[4])
  redis.call('RENAME', KEYS[3], KEYS[5])
  shrink(KEYS[4], KEYS[5])
else
  redis.call('UNLINK', KEYS[2])
end
forget(7)
return { 'deleted' }
