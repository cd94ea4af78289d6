-- Makes known the period or the terms that admit found missing. What is there
-- already stays: whoever comes second changes nothing but a period's end. What is
-- lost beyond that, since admit looked, stays closed: the caller did not ask the
-- database about it. A plan older than one seen opens nothing; a newer one is seen
-- from now on, so that nobody is admitted under the one before once a period is open.
--
-- ARGV[2] usage epoch      [3] period end (ms)
-- ARGV[4] used             [5] peak             what the database knows of the period
-- ARGV[6] snapshot digest  [7] snapshot         [8] lease (ms)
-- ARGV[9] missing: 2 period, 3 snapshot
-- ARGV[10] workspace revision                   [11] plan revision
--
-- Returns {opened, now}: opened is a sum of 2 period, 4 snapshot

local epoch, finish, digest = ARGV[2], tonumber(ARGV[3]), ARGV[6]
local used, peak, lease = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[8])
local revision, plan_revision = tonumber(ARGV[10]), tonumber(ARGV[11])
local state, stale = kept_state(digest)

local present = present_epoch()
if not present or state['e'] ~= present then return {0, now} end
if ARGV[9] == '3' and not state['p' .. epoch] then return {0, now} end
local seen, plan_seen = tonumber(state['r'] or 0), tonumber(state['q'] or 0)
if revision < seen or revision == seen and plan_revision < plan_seen then
  return {0, now}
end

local opened, update = 0, {}
local known, known_peak = read_period(state['p' .. epoch])
if not known then
  opened = 2
  local live = redis.call('ZCOUNT', KEYS[2], '(' .. now, '+inf')
  known, known_peak = used, math.max(peak, live)
end
add(update, 'p' .. epoch, pack_period(known, known_peak, finish))
if not state['k' .. digest] then opened = opened + 4 end
add_terms(update, digest, ARGV[7], lease, epoch)
if revision > seen or plan_revision > plan_seen then
  add(update, 'r', ARGV[10])
  add(update, 'q', ARGV[11])
end

write_state(update, stale, finish)
return {opened, now}
