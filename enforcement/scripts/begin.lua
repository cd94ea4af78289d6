-- May the caller rebuild this workspace now? One does at a time, and nobody before
-- whatever was decided on what is lost has been published or thrown away. What
-- there is of an earlier epoch is cleared when a rebuild begins, and not when it
-- ends: what is told of completions in between is not to be lost with it. The leases
-- stay until then, because the ledger does not know how far they were extended.
--
-- ARGV[2] token of the caller      [3] fence (ms)
-- ARGV[4] how long nobody else may rebuild it (ms)
-- ARGV[5] how long the epoch is kept (ms), 0 for ever
-- ARGV[6] '1' where anybody was ever decided about, as far as the caller knows
--
-- Returns {0, now, epoch, wait, young, held}: it may; wait (ms) is what is left of the
--           fence, which is to be kept if it turns out that this workspace was ever
--           decided about, or anybody, where young is 1: the epoch itself is within the
--           fence. Held is 1 where this Redis still knows of an allow, heard or not
--         {1, now, wait, busy}  not yet: come again after that (ms); busy is 1 where
--           another is at it
--         {2, now}        somebody has rebuilt it

-- Allows may be unheard, and the ledger has those that are not. A denial or a
-- completion of an unknown execution is true in any epoch: these stay, unless finding
-- them would take long. True if there may have been any allow.
local function forget(key)
  local size = redis.call('HLEN', key)
  if size > 5000 then redis.call('UNLINK', key) end
  if size == 0 or size > 5000 then return size > 0 end
  local fields, gone = redis.call('HGETALL', key), {}
  for i = 1, #fields, 2 do
    if string.sub(fields[i], 1, 1) ~= '!' and string.match(fields[i + 1], '^[^sfcn]') then gone[#gone + 1] = fields[i] end
  end
  in_parts(gone, function(...) redis.call('HDEL', key, ...) end)
  return #gone > 0
end

local token, fence, guard, keep = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local state = redis.call('HMGET', KEYS[1], 'e', 'f', 'g')
local epoch = present_epoch()
if epoch and state[1] == epoch then return {2, now} end

local is_new = not epoch
if is_new then epoch = identity() .. ' ' .. string.format('%.0f', now) end
local born = tonumber(string.match(epoch, ' (%d+)$'))

-- In an epoch younger than the fence nobody was admitted; in an older one, a
-- workspace without a marker may have lost it at any time up to now.
local shut, since = string.match(state[2] or '', '^(.*) (%d+)$')
since = shut == epoch and tonumber(since)
if not since then since = (state[1] or now < born + fence) and born or now end
-- A clock that was set back must not keep anybody out until it is there again: not by
-- the fence, nor by a turn that is longer than any.
since = math.min(since, now)
if born > now then born = since end
local by, till = string.match(state[3] or '', '^(%S+) (%d+)$')
local names = redis.call('HKEYS', KEYS[1])

if is_new then
  redis.call('SET', KEYS[6], epoch)
  if keep > 0 then redis.call('PEXPIRE', KEYS[6], keep) end
end
redis.call('HSET', KEYS[1], 'f', epoch .. ' ' .. string.format('%.0f', since))
if redis.call('PEXPIRETIME', KEYS[1]) < now + window then redis.call('PEXPIREAT', KEYS[1], now + window) end
local young = now < born + fence
if young and ARGV[6] == '1' then return {1, now, born + fence - now, 0} end
local left = by and by ~= token and tonumber(till) - now or 0
if left > 0 and left <= 4 * guard then return {1, now, left, 1} end

local gone = {}
for _, name in ipairs(names) do
  local kind = string.sub(name, 1, 1)
  if kind == 'e' or kind == 't' or kind == 'p' then gone[#gone + 1] = name end
end
in_parts(gone, function(...) redis.call('HDEL', KEYS[1], ...) end)
local held = redis.call('EXISTS', KEYS[2], KEYS[3]) > 0
redis.call('UNLINK', KEYS[3])
held = forget(KEYS[4]) or held
held = forget(KEYS[5]) or held
redis.call('HSET', KEYS[1], 'g', token .. ' ' .. string.format('%.0f', now + guard))
return {0, now, epoch, math.max(since + fence - now, 0), young and 1 or 0, held and 1 or 0}
