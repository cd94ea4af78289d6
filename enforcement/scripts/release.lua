-- These executions of one workspace are over: free their slots.
--
-- ARGV[2…] two for each: execution, outcome S F C N
--
-- Returns {0, now, answer…}: an answer is the status found ('-' none), then '1'
-- where a live slot was freed and '1' where a unit was given back, else '0'

local found, where, live = {}, {}, {}
local answers, gone, moved, kept, units = {}, {}, {}, {}, {}

for i = 2, #ARGV, 2 do
  local id, outcome = ARGV[i], ARGV[i + 1]
  if found[id] == nil then
    found[id], where[id] = find(id)
    local expiry = redis.call('ZSCORE', KEYS[2], id)
    live[id] = expiry and tonumber(expiry) > now
    if expiry then gone[#gone + 1] = id end
  end
  local record = found[id]
  local was = record and status(record) or '-'
  local back = false
  if was == 'A' then
    if outcome == 'N' then
      local _, epoch = terms(record)
      back = epoch ~= nil
      if back then units[epoch] = (units[epoch] or 0) + 1 end
    end
    record = outcome .. string.sub(record, 2, 35)
    if where[id] == KEYS[3] then moved[#moved + 1] = id end
  elseif was == '-' then
    record = string.lower(outcome)
  end
  if was == 'A' or was == '-' then
    kept[#kept + 1], kept[#kept + 2] = id, record
  end
  found[id] = record
  answers[#answers + 1] = was .. (live[id] and '1' or '0') .. (back and '1' or '0')
  live[id] = false
end
local update = refunded_periods(units)

if #gone > 0 then redis.call('ZREM', KEYS[2], unpack(gone)) end
if #moved > 0 then redis.call('HDEL', KEYS[3], unpack(moved)) end
remember(kept)
if #update > 0 then redis.call('HSET', KEYS[1], unpack(update)) end
return {0, now, unpack(answers)}
