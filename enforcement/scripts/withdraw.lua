-- These requests of one workspace were refused without this Redis: have it on
-- record. An allow that the very same request obtained and nobody heard of is
-- taken back, unless its execution completed meanwhile; one that another request
-- was told of stays, and so does an earlier denial.
--
-- ARGV[2…] two for each: execution, request (8 bytes)
--
-- Returns {0, now, answer…}: an answer is 'f' or 'r' and the denial

local answers, gone, kept, units, denials = {}, {}, {}, {}, {}
for i = 2, #ARGV, 2 do
  local id, request = ARGV[i], '!' .. ARGV[i + 1]
  local denied = denials[request] or redis.call('HGET', current, request)
    or redis.call('HGET', previous, request)
  local record, key = find(id)
  local mine = record and status(record) == 'A' and string.sub(record, 2, 9) == ARGV[i + 1]
  if denied then
    answers[#answers + 1] = 'r' .. denied
  else
    local digest = string.rep('\0', 8)
    if mine then
      digest = string.sub(record, 10, 17)
      gone[#gone + 1] = {id, key}
      local _, epoch = terms(record)
      if epoch then units[epoch] = (units[epoch] or 0) + 1 end
    end
    denied = denial(digest, 16, 0, 0, 0, 0)
    denials[request] = denied
    kept[#kept + 1], kept[#kept + 2] = request, denied
    answers[#answers + 1] = 'f' .. denied
  end
end
local update = refunded_periods(units)

for _, each in ipairs(gone) do
  redis.call('ZREM', KEYS[2], each[1])
  redis.call('HDEL', each[2], each[1])
end
remember(kept)
if #update > 0 then redis.call('HSET', KEYS[1], unpack(update)) end
return {0, now, unpack(answers)}
