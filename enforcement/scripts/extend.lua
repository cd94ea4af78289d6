-- These executions of one workspace still run: move their leases later, never
-- earlier, and only live ones.
--
-- ARGV[2…] three for each: execution, tasks and payload (bytes) that it tells of,
--           '' nothing
--
-- Returns {shut, now, answer…, digest, snapshot…}: shut is 1 where the workspace is to be
-- rebuilt, and what has no record may run; an answer is the lease's expiry
-- (6 bytes, ms, 0 where none is live) and the record, if any; then each snapshot
-- that a record was measured against

local answers, later, snapshots, sent, longest, last = {}, {}, {}, {}, 0, 0
local told = {}

-- The record with the most that is known of the execution's size.
local function grown(record, tasks, payload)
  local most, largest = 0, 0
  if #record >= 46 then most, largest = struct.unpack('<I5I6', string.sub(record, 36, 46)) end
  most = math.max(most, math.min(tonumber(tasks) or -1, 2 ^ 40 - 2) + 1)
  largest = math.max(largest, math.min(tonumber(payload) or -1, 2 ^ 48 - 2) + 1)
  if most == 0 and largest == 0 then return record end
  return string.sub(record, 1, 35) .. struct.pack('<I5I6', most, largest)
end

for i = 2, #ARGV, 3 do
  local id = ARGV[i]
  local record, key = find(id)
  local expiry = tonumber(redis.call('ZSCORE', KEYS[2], id) or 0)
  if expiry <= now then expiry = 0 end
  if record and #record >= 35 then
    local of = string.sub(record, 10, 17)
    local lease = terms(record)
    if expiry > 0 and lease then
      expiry = math.max(expiry, now + lease)
      later[#later + 1], later[#later + 2] = expiry, id
      longest, last = math.max(longest, lease), math.max(last, expiry)
      if key == KEYS[3] then
        local was = told[id] or record
        local new = grown(was, ARGV[i + 1], ARGV[i + 2])
        if new ~= was then told[id] = new end
      end
    end
    if not sent[of] then
      sent[of] = true
      local snapshot = redis.call('HGET', KEYS[1], 's' .. of)
      local keep = redis.call('HGET', KEYS[1], 'k' .. of)
      if snapshot then snapshots[#snapshots + 1] = {of, snapshot, tonumber(keep)} end
    end
  end
  answers[#answers + 1] = struct.pack('<I6', expiry) .. (record or '')
end

if #later > 0 then
  redis.call('ZADD', KEYS[2], 'XX', 'GT', unpack(later))
  outlive(last, longest)
end
for id, record in pairs(told) do redis.call('HSET', KEYS[3], id, record) end
local present = present_epoch()
local shut = (not present or redis.call('HGET', KEYS[1], 'e') ~= present) and 1 or 0
local reply = {shut, now, unpack(answers)}
for _, each in ipairs(snapshots) do
  reply[#reply + 1], reply[#reply + 2] = each[1], each[2]
  if each[3] < now + longest + 2 * window then
    redis.call('HSET', KEYS[1], 'k' .. each[1], string.format('%.0f', now + longest + 3 * window))
  end
end
return reply
