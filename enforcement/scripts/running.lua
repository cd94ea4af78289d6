-- Which executions of one workspace hold a live lease? Reads only.
--
-- ARGV[2] leases that expire later than this (ms), 0 all   [3] how many
--
-- Returns {count, now, execution, answer…, digest, snapshot…}: an answer is the
-- lease's expiry (6 bytes, ms) and the record, if any; the soonest to expire comes
-- first, and those that expire with the last one come on top of the number asked
-- for. Then each snapshot that a record was measured against

local after = string.format('(%.0f', math.max(now, tonumber(ARGV[2])))
local leases = redis.call('ZRANGEBYSCORE', KEYS[2], after, '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[3])
local ids, expiries, last = {}, {}, 0
for i = 1, #leases, 2 do
  local expiry = tonumber(leases[i + 1])
  ids[#ids + 1], expiries[#expiries + 1] = leases[i], expiry
  last = expiry > (expiries[#expiries - 1] or 0) and 1 or last + 1
end
if #ids == tonumber(ARGV[3]) and last > 0 then
  local final = expiries[#expiries]
  local score = string.format('%.0f', final)
  local together = redis.call('ZRANGEBYSCORE', KEYS[2], score, score)
  for i = last + 1, #together do
    ids[#ids + 1], expiries[#expiries + 1] = together[i], final
  end
end

local records = {}
in_parts(ids, function(...)
  for _, record in ipairs(redis.call('HMGET', KEYS[3], ...)) do records[#records + 1] = record end
end)

local reply, snapshots, sent = {#ids, now}, {}, {}
for i, id in ipairs(ids) do
  local record = records[i]
  reply[#reply + 1] = id
  reply[#reply + 1] = struct.pack('<I6', expiries[i]) .. (record or '')
  if record and #record >= 35 then
    local of = string.sub(record, 10, 17)
    if not sent[of] then
      sent[of] = true
      local snapshot = redis.call('HGET', KEYS[1], 's' .. of)
      if snapshot then snapshots[#snapshots + 1], snapshots[#snapshots + 2] = of, snapshot end
    end
  end
end
for _, each in ipairs(snapshots) do reply[#reply + 1] = each end
return reply
