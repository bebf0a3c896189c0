-- Adds an entry to the index of runs before an append starts the run. The time is negative, so that
-- all entries are due.
-- KEYS: runs. ARGV: member.
redis.call('ZADD', KEYS[1], text(-clock()), ARGV[1])
return {}
