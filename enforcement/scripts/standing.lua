-- How do these executions of one workspace stand? Reads only.
--
-- ARGV[2…] executions
--
-- Returns {0, now, answer…}: an answer is the lease's expiry (6 bytes, ms, 0 where
-- none is live) and the status of the record, nothing where there is none

local answers = {}
for i = 2, #ARGV do
  local expiry = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[i]) or 0)
  if expiry <= now then expiry = 0 end
  local record = find(ARGV[i])
  answers[#answers + 1] = struct.pack('<I6', expiry) .. (record and status(record) or '')
end
return {0, now, unpack(answers)}
