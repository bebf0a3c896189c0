-- Returns the head and the usage of a session. The usage is empty if no append had usage.
-- KEYS: head.
local answer = head(KEYS[1])
if #answer > 0 then answer[#answer + 1] = redis.call('HGET', KEYS[1], 'usage') or '' end
return answer
