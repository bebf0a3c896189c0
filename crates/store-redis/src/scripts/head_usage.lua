-- The head, and the usage of the session after it: empty if no append has said any.
-- KEYS: head.
local answer = head(KEYS[1])
if #answer > 0 then answer[#answer + 1] = redis.call('HGET', KEYS[1], 'usage') or '' end
return answer
