-- Writes into the index of runs what an append is about to tell. The time is negative, so that all of them are due.
-- KEYS: runs. ARGV: member.
redis.call('ZADD', KEYS[1], text(-clock()), ARGV[1])
return {}
