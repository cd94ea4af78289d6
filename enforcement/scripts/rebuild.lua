-- Opens a workspace with what the ledger knows. It loses against a rebuild that
-- began later, and against a loss since this one began.
--
-- ARGV[2] token            [3] epoch            [4] usage epoch
-- ARGV[5] period end (ms)  [6] used             [7] peak
-- ARGV[8] snapshot digest  [9] snapshot         [10] lease (ms)
-- ARGV[11] workspace revision                   [12] plan revision
-- ARGV[13] arrival time of the start rate (µs), 0 none
-- ARGV[14…] three for each earlier period that an execution was charged to: digest,
--           snapshot, usage epoch; then ''; then five for each execution that the
--           ledger knows: execution, status, expiry of its lease (ms), digest, when
--           it was admitted (ms). Of a tombstone only the first two mean anything.
--
-- Returns {opened, now}: 1, or 0 for a rebuild that lost

local token, epoch, usage_epoch = ARGV[2], ARGV[3], ARGV[4]
local finish, used, peak = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local digest, lease = ARGV[8], tonumber(ARGV[10])
local state, stale = kept_state(digest)
local by = string.match(state['g'] or '', '^%S+')
if by ~= token or present_epoch() ~= epoch then return {0, now} end

local update, at = {}, 14
while ARGV[at] ~= '' do
  add_terms(update, ARGV[at], ARGV[at + 1], lease, ARGV[at + 2])
  at = at + 3
end

-- The ledger says which executions run, and this Redis, if it still knows, how far
-- their leases were extended.
local extended = {}
local before = redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')
for i = 1, #before, 2 do extended[before[i]] = tonumber(before[i + 1]) end

-- What is on record of an execution since the rebuild began is its completion. Few
-- are, where the ledger knows many: they are not looked up one by one.
local told = {}
for _, key in ipairs({previous, current}) do
  local fields = redis.call('HGETALL', key)
  for i = 1, #fields, 2 do told[fields[i]] = status(fields[i + 1]) end
end

local leases, taken, kept, last = {}, {}, {}, 0
for i = at + 1, #ARGV, 5 do
  local id, of = ARGV[i], ARGV[i + 1]
  local expiry = math.max(tonumber(ARGV[i + 2]), extended[id] or 0)
  local over = told[id]
  if of == 'A' and over then
    of = string.upper(over)
    if over == 'n' and ARGV[i + 3] == digest then used = math.max(used - 1, 0) end
  end
  if of == string.lower(of) then
    if not over then kept[#kept + 1], kept[#kept + 2] = id, of end
  else
    local record = struct.pack('<c1c8c8I5I4I4I5', of, string.rep('\0', 8), ARGV[i + 3],
      used, #leases / 2, peak, math.max(tonumber(ARGV[i + 4]) - 1577836800000, 0))
    if of == 'A' and expiry > now then
      leases[#leases + 1], leases[#leases + 2] = expiry, id
      taken[#taken + 1], taken[#taken + 2] = id, record
      last = math.max(last, expiry)
    else
      kept[#kept + 1], kept[#kept + 2] = id, record
    end
  end
end

add(update, 'e', epoch)
add(update, 'p' .. usage_epoch, pack_period(used, math.max(peak, #leases / 2), finish))
add_terms(update, digest, ARGV[9], lease, usage_epoch)
if tonumber(ARGV[13]) > 0 then add(update, 't', ARGV[13]) end
local revision, seen = tonumber(ARGV[11]), tonumber(state['r'] or 0)
local plan_revision, plan_seen = tonumber(ARGV[12]), tonumber(state['q'] or 0)
if revision > seen or revision == seen and plan_revision > plan_seen then
  add(update, 'r', ARGV[11])
  add(update, 'q', ARGV[12])
end
stale[#stale + 1], stale[#stale + 2] = 'f', 'g'

write_state(update, stale, finish)
remember(kept)
redis.call('UNLINK', KEYS[2])
if #leases > 0 then
  in_parts(leases, function(...) redis.call('ZADD', KEYS[2], ...) end)
  in_parts(taken, function(...) redis.call('HSET', KEYS[3], ...) end)
  outlive(last, lease)
end
return {1, now}
