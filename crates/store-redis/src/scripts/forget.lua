-- Deletes the stream whose keys begin at this index, and notifies its readers. Keys: feed, chunks,
-- discarded, marks, channel.
local function forget(index)
  local gone = redis.call('UNLINK', KEYS[index], KEYS[index + 1], KEYS[index + 2], KEYS[index + 3])
  if gone > 0 then redis.call('PUBLISH', KEYS[index + 4], '') end
end
