-- Removes a member of an index that leads to no session, unless that may still be on its way.
-- KEYS: index. ARGV: member, its time.
if clock() - math.abs(tonumber(ARGV[2])) > 600000 then redis.call('ZREM', KEYS[1], ARGV[1]) end
return {}
