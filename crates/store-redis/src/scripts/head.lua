-- KEYS: head.
return head(KEYS[1])
