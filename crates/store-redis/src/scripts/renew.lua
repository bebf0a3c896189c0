-- Extends the lease if the run is the current one.
-- KEYS: head. ARGV: run, duration.
local run = redis.call('HGET', KEYS[1], 'run')
if not run then return {} end
local renewed = run == ARGV[1] and '1' or '0'
if renewed == '1' then
  local now = math.max(clock(), tonumber(redis.call('HGET', KEYS[1], 'updated')))
  redis.call('HSET', KEYS[1], 'lease', text(after(now, ARGV[2])))
end
local answer = head(KEYS[1])
table.insert(answer, 1, renewed)
return answer
