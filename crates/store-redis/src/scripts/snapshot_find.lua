-- Returns the snapshot of the current life of a session, or nothing if there is none.
-- KEYS: head, snapshot.
local kept = redis.call('HMGET', KEYS[2], 'life', 'version', 'append', 'fold', 'body')
if not kept[1] or kept[1] ~= redis.call('HGET', KEYS[1], 'life') then return {} end
return { kept[2], kept[3], kept[4], kept[5] }
