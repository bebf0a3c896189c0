-- Returns the head of a session.
-- KEYS: head.
return head(KEYS[1])
