-- Removes an index entry without a session, unless the session may still be in creation.
-- KEYS: index. ARGV: member, its time.
if clock() - math.abs(tonumber(ARGV[2])) > 600000 then redis.call('ZREM', KEYS[1], ARGV[1]) end
return {}
