-- May these executions of one workspace start? All limits are checked, then all
-- is written; each execution is judged after what the ones before it took.
--
-- ARGV[2] workspace revision   [3] plan revision   [4] usage epoch
-- ARGV[5] period start (ms)    [6] period end (ms) [7] snapshot digest (8 bytes)
-- ARGV[8] quota  [9] concurrency  [10] starts per minute: a number, '' no limit
-- ARGV[11] lease (ms)
-- ARGV[12…] four for each: execution, request (8 bytes), '1' if its payload is
--           too large, deadline (ms, 0 none)
--
-- Returns {0, now, answer…, digest, snapshot…}: an answer is 'f' fresh or 'r'
--           repeated and the record; then each snapshot but ARGV[7]'s that a
--           repeated record was measured against
--         {1, now, revision seen, plan revision seen}  the plan is stale, or the
--           period does not contain now; nothing is written
--         {2, now, missing}  1 workspace, or it is of another epoch: rebuild it;
--           2 period, 3 snapshot: open it; nothing is written

local revision, plan_revision = tonumber(ARGV[2]), tonumber(ARGV[3])
local epoch, digest = ARGV[4], ARGV[7]
local starts, finish = tonumber(ARGV[5]), tonumber(ARGV[6])
local quota, most, rate = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local lease = tonumber(ARGV[11])

local ids, fields = {}, {}
for i = 12, #ARGV, 4 do
  ids[#ids + 1] = ARGV[i]
  fields[#fields + 1] = ARGV[i]
  fields[#fields + 1] = '!' .. ARGV[i + 1]
end
local running = redis.call('HMGET', KEYS[3], unpack(ids))
local recent = redis.call('HMGET', current, unpack(fields))
local older = redis.call('HMGET', previous, unpack(fields))

local records, denials, fresh = {}, {}, false
for i, id in ipairs(ids) do
  local request = fields[2 * i]
  records[id] = running[i] or recent[2 * i - 1] or older[2 * i - 1] or nil
  denials[request] = recent[2 * i] or older[2 * i] or nil
  local record = records[id]
  if not denials[request] and (not record or #record < 35) then fresh = true end
end

local state = redis.call('HMGET', KEYS[1], 'e', 'r', 'q', 't', 'p' .. epoch, 'k' .. digest)
-- What is on record of an earlier epoch may be unheard, and is no answer.
local present = present_epoch()
if not present or state[1] ~= present then return {2, now, 1} end
local seen, plan_seen = tonumber(state[2] or 0), tonumber(state[3] or 0)
local used, peak, period_end = read_period(state[5])
if fresh then
  if revision < seen or (revision == seen and plan_revision < plan_seen)
    or now < starts or now >= finish then
    return {1, now, seen, plan_seen}
  end
  if not used or period_end ~= finish then return {2, now, 2} end
  if not state[6] then return {2, now, 3} end
end

local live = redis.call('ZCOUNT', KEYS[2], '(' .. now, '+inf')
local gap = rate and 60000000 / rate
-- How far the arrival time is ahead of now (µs): a number as large as a date would
-- round away the fractions of a gap, and with them the last start of a burst.
local ahead = math.min(math.max(tonumber(state[4] or 0) - micros, 0), 60000000)
local answers, kept, taken, leases, shared = {}, {}, {}, {}, {}
local first_expiry

-- How long until a slot frees itself at the latest: 0 where none ever will.
local function until_slot()
  if not first_expiry then
    local first = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    first_expiry = tonumber(first[2] or 0)
    if #leases > 0 and (first_expiry == 0 or first_expiry > now + lease) then
      first_expiry = now + lease
    end
  end
  return math.max(first_expiry - now, 0)
end

-- The reasons against an execution, and when to ask again.
local function judge(tombstone, oversized, deadline)
  if deadline > 0 and now > deadline then return 16, 0 end
  local reasons, retry = 0, 0
  if oversized then reasons = 1 end
  if quota and used >= quota and tombstone ~= 'n' then
    reasons, retry = reasons + 2, finish - now
  end
  if not tombstone and most and live >= most then
    reasons, retry = reasons + 4, math.max(retry, until_slot())
  end
  if not tombstone and rate then
    local wait = rate > 0 and ahead + gap - 60000000 or 0
    if rate == 0 or wait >= 1 then
      reasons, retry = reasons + 8, math.max(retry, math.ceil(wait / 1000))
    end
  end
  if oversized then retry = 0 end
  return reasons, retry
end

for i, id in ipairs(ids) do
  local at = 12 + 4 * (i - 1)
  local request, record = fields[2 * i], records[id]
  if denials[request] then
    answers[i] = 'r' .. denials[request]
  elseif record and #record >= 35 then
    answers[i] = 'r' .. record
    if string.sub(record, 2, 9) ~= ARGV[at + 1] then
      -- Another event was told of the allow: the first one cannot withdraw it any more.
      records[id] = status(record) .. string.rep('\0', 8) .. string.sub(record, 10)
      if records[id] ~= record then shared[#shared + 1] = id end
    end
  else
    local tombstone = record and status(record)
    local reasons, retry = judge(tombstone, ARGV[at + 2] == '1', tonumber(ARGV[at + 3]))
    if reasons > 0 then
      record = denial(digest, reasons, used, live, peak, retry)
      denials[request] = record
      kept[#kept + 1], kept[#kept + 2] = request, record
    else
      if tombstone ~= 'n' then used = used + 1 end
      if not tombstone then
        live = live + 1
        peak = math.max(peak, live)
        if rate then ahead = ahead + gap end
        leases[#leases + 1], leases[#leases + 2] = now + lease, id
      end
      record = struct.pack('<c1c8c8I5I4I4I5', tombstone and string.upper(tombstone) or 'A',
        ARGV[at + 1], digest, used, live, peak, since)
      records[id] = record
      if tombstone then
        kept[#kept + 1], kept[#kept + 2] = id, record
      else
        taken[#taken + 1] = id
      end
    end
    answers[i] = 'f' .. record
  end
end

local reply, sent = {0, now, unpack(answers)}, {[digest] = true}
for _, answer in ipairs(answers) do
  local of = string.sub(answer, 2, 2) == 'D' and string.sub(answer, 3, 10) or string.sub(answer, 11, 18)
  if not sent[of] then
    sent[of] = true
    local snapshot = redis.call('HGET', KEYS[1], 's' .. of)
    if snapshot then reply[#reply + 1], reply[#reply + 2] = of, snapshot end
  end
end
for _, id in ipairs(shared) do
  local _, key = find(id)
  if key then redis.call('HSET', key, id, records[id]) end
end
if not fresh then return reply end

if #leases > 0 then
  -- An expired lease frees its slot; its record moves to what is over.
  local expired = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 500)
  if #expired > 0 then
    local old = redis.call('HMGET', KEYS[3], unpack(expired))
    for i, id in ipairs(expired) do
      if old[i] then kept[#kept + 1], kept[#kept + 2] = id, old[i] end
    end
    redis.call('HDEL', KEYS[3], unpack(expired))
    redis.call('ZREM', KEYS[2], unpack(expired))
  end
  redis.call('ZADD', KEYS[2], unpack(leases))
  local held = {}
  for _, id in ipairs(taken) do
    held[#held + 1], held[#held + 2] = id, records[id]
  end
  redis.call('HSET', KEYS[3], unpack(held))
  outlive(now + lease, lease)
end
remember(kept)
local update = {'p' .. epoch, pack_period(used, peak, finish), 'r', ARGV[2], 'q', ARGV[3]}
if rate then update[#update + 1], update[#update + 2] = 't', string.format('%.0f', micros + ahead) end
if tonumber(state[6]) < now + lease + 2 * window then
  update[#update + 1] = 'k' .. digest
  update[#update + 1] = string.format('%.0f', now + lease + 3 * window)
end
redis.call('HSET', KEYS[1], unpack(update))
return reply
