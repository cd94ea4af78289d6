-- What every script of this folder starts with. The clock is Redis's own: the
-- machines that call may disagree about the time, and expiry must not.
--
-- KEYS[1] w   hash: e the epoch that it was opened in, f the epoch and since when (ms)
--             it is shut, g who rebuilds it and until when (ms), r workspace revision and q plan revision seen,
--             t arrival time of the start rate (µs), p<usage epoch> a period's
--             counters; of a snapshot s<digest> what the caller wrote, u<digest>
--             its lease (ms), a blank and its usage epoch, k<digest> until when it
--             is kept (ms)
-- KEYS[2] l   sorted set: execution -> expiry of its lease (ms)
-- KEYS[3] x   hash: execution -> record, while it holds a lease
-- KEYS[4] o0  hashes of what is over, in two buckets of time that take turns:
-- KEYS[5] o1  execution -> record, "!"<request> -> denial
-- KEYS[6]     the epoch: which reign of which primary this data is of, a blank, and
--             when it was first seen (ms). In a Cluster each workspace has its own
-- ARGV[1]     length of a bucket (ms): what is over is remembered as long as that
--             at least, and twice as long at most
--
-- A record is one byte of status, then, but for a tombstone, the numbers:
--   A            allowed      request 8, snapshot 8, used 5, concurrent 4, peak 4, time 5
--                the same and tasks 5, payload 6: the most that its progress told,
--                each plus 1, 0 nothing
--   S F C N      the first, completed: succeeded, failed, canceled, not started
--   s f c n      a tombstone: completed, but never heard of before
--   D            denied       snapshot 8, reasons 1, used 5, concurrent 4, peak 4, time 5, retry 5
-- Integers are unsigned, little-endian; time is ms since 2020; reasons is a sum of
-- 1 payload, 2 quota, 4 concurrency, 8 rate, 16 unavailable; retry is ms, 0 none.

local window = tonumber(ARGV[1])
local clock = redis.call('TIME')
local micros = clock[1] * 1000000 + clock[2]
local now = math.floor(micros / 1000)
local since = now - 1577836800000
local bucket = math.floor(now / window)
local current, previous = KEYS[4], KEYS[5]
if bucket % 2 == 1 then current, previous = KEYS[5], KEYS[4] end

-- The epoch of this data, nil where it is of no present one. A primary takes a new
-- replication id when it starts and when it is promoted; what it has in memory then
-- may be older than what was answered before.
local function identity()
  local info = redis.pcall('INFO', 'replication')
  if type(info) ~= 'string' then
    if not rawget(_G, 'struct') then return 'stand-in' end -- it has no replication
    error('INFO replication is refused: ' .. info.err)
  end
  local at = string.find(info, 'master_replid:', 1, true)
  if not at then error('INFO replication tells no master_replid') end
  return string.sub(info, at + 14, at + 53)
end

local function present_epoch()
  local epoch = redis.call('GET', KEYS[6])
  if not epoch or string.match(epoch, '^%S+') ~= identity() then return nil end
  return epoch
end

local function denial(snapshot, reasons, used, live, peak, retry)
  return struct.pack('<c1c8I1I5I4I4I5I5', 'D', snapshot, reasons, used, live, peak, since,
    math.min(retry, 2 ^ 40 - 1))
end

local function status(record)
  return string.sub(record, 1, 1)
end

-- The record of an execution and the hash it stands in: false if there is none.
local function find(execution)
  for _, key in ipairs({KEYS[3], current, previous}) do
    local record = redis.call('HGET', key, execution)
    if record then return record, key end
  end
  return false, false
end

-- Lua hands some 8,000 values to one call at most: a longer list goes in parts.
local function in_parts(values, send)
  for i = 1, #values, 2000 do send(unpack(values, i, math.min(i + 1999, #values))) end
end

local function read_period(packed)
  if not packed then return nil end
  local used, peak, finish = struct.unpack('<I5I4I6', packed)
  return used, peak, finish
end

local function pack_period(used, peak, finish)
  return struct.pack('<I5I4I6', used, peak, finish)
end

-- Writes to the current bucket and sees that it lives until its turn is over.
local function remember(pairs_of_fields)
  if #pairs_of_fields == 0 then return end
  in_parts(pairs_of_fields, function(...) redis.call('HSET', current, ...) end)
  local finish = (bucket + 2) * window
  if redis.call('PEXPIRETIME', current) < finish then
    redis.call('PEXPIREAT', current, finish)
  end
end

-- The leases and their records live a window past the last lease, for a completion
-- that comes late; the snapshots that they were measured against live longer than
-- any record. Moved in strides, not on each call.
local function outlive(expiry, lease)
  if redis.call('PEXPIRETIME', KEYS[2]) >= expiry + window then return end
  local finish = expiry + window + math.max(60000, math.floor(lease / 8))
  redis.call('PEXPIREAT', KEYS[2], finish)
  redis.call('PEXPIREAT', KEYS[3], finish)
  if redis.call('PEXPIRETIME', KEYS[1]) < finish + window then
    redis.call('PEXPIREAT', KEYS[1], finish + window)
  end
end

-- The lease and the usage epoch of the snapshot that a record was measured against.
local function terms(record)
  local packed = redis.call('HGET', KEYS[1], 'u' .. string.sub(record, 10, 17))
  if not packed then return nil end
  local lease, epoch = string.match(packed, '^(%d+) (.*)$')
  return tonumber(lease), epoch
end

-- Units to give back, a number for each usage epoch. A period that is no longer
-- kept has nothing left to refuse.
local function refunded_periods(units)
  local update = {}
  for epoch, n in pairs(units) do
    local used, peak, finish = read_period(redis.call('HGET', KEYS[1], 'p' .. epoch))
    if used then
      update[#update + 1] = 'p' .. epoch
      update[#update + 1] = pack_period(math.max(used - n, 0), peak, finish)
    end
  end
  return update
end

