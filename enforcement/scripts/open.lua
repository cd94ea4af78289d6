-- Makes known what admit found missing. What is there already stays: whoever
-- comes second changes nothing but a period's end. What is lost beyond that, since
-- admit looked, stays closed: the caller did not ask the database about it. A plan
-- older than one seen opens nothing; a newer one is seen from now on, so that nobody
-- is admitted under the one before once a period is open.
--
-- ARGV[2] marker           [3] usage epoch      [4] period end (ms)
-- ARGV[5] used             [6] peak             what the database knows of the period
-- ARGV[7] snapshot digest  [8] snapshot         [9] lease (ms)
-- ARGV[10] missing: 1 workspace, 2 period, 3 snapshot
-- ARGV[11] workspace revision                   [12] plan revision
-- ARGV[13…] for a workspace, three for each earlier period that a lease was charged
--           to: digest, snapshot, usage epoch; then ''; then three for each lease the
--           database knows: execution, expiry (ms), digest
--
-- Returns {opened, now}: opened is a sum of 1 workspace, 2 period, 4 snapshot

local missing = tonumber(ARGV[10])
local epoch, finish, digest = ARGV[3], tonumber(ARGV[4]), ARGV[7]
local used, peak, lease = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[9])
local revision, plan_revision = tonumber(ARGV[11]), tonumber(ARGV[12])
local fields = redis.call('HGETALL', KEYS[1])
local state, stale = {}, {}
for i = 1, #fields, 2 do
  local name, value = fields[i], fields[i + 1]
  local kind = string.sub(name, 1, 1)
  state[name] = value
  if kind == 'p' then
    local _, _, period_end = read_period(value)
    if period_end + 2 * window < now then stale[#stale + 1] = name end
  elseif kind == 'k' and tonumber(value) < now and name ~= 'k' .. digest then
    local of = string.sub(name, 2)
    for _, each in ipairs({'k', 's', 'u'}) do stale[#stale + 1] = each .. of end
  end
end

if missing > 1 and not state['e'] or missing > 2 and not state['p' .. epoch] then
  return {0, now}
end
local seen, plan_seen = tonumber(state['r'] or 0), tonumber(state['q'] or 0)
if revision < seen or revision == seen and plan_revision < plan_seen then
  return {0, now}
end

local opened, update = 0, {}
local function add(name, value)
  update[#update + 1], update[#update + 2] = name, value
end
local function add_terms(of, snapshot, of_epoch)
  add('s' .. of, snapshot)
  add('u' .. of, ARGV[9] .. ' ' .. of_epoch)
  add('k' .. of, string.format('%.0f', now + lease + 3 * window))
end

local leases, taken, last = {}, {}, 0
if not state['e'] then
  opened = 1
  add('e', ARGV[2])
  local at = 13
  while ARGV[at] and ARGV[at] ~= '' do
    add_terms(ARGV[at], ARGV[at + 1], ARGV[at + 2])
    at = at + 3
  end
  for i = at + 1, #ARGV, 3 do
    local id, expiry = ARGV[i], tonumber(ARGV[i + 1])
    local record = find(id)
    if expiry > now and (not record or status(record) == 'A') then
      leases[#leases + 1], leases[#leases + 2] = expiry, id
      taken[#taken + 1] = id
      taken[#taken + 1] = record or struct.pack('<c1c8c8I5I4I4I5', 'A',
        string.rep('\0', 8), ARGV[i + 2], used, #leases / 2, peak, since)
      last = math.max(last, expiry)
    end
  end
end

local known, known_peak = read_period(state['p' .. epoch])
if not known then
  opened = opened + 2
  local live = redis.call('ZCOUNT', KEYS[2], '(' .. now, '+inf')
  known, known_peak = used, math.max(peak, live, #leases / 2)
end
add('p' .. epoch, pack_period(known, known_peak, finish))
if not state['k' .. digest] then opened = opened + 4 end
add_terms(digest, ARGV[8], epoch)
if revision > seen or plan_revision > plan_seen then
  add('r', ARGV[11])
  add('q', ARGV[12])
end

in_parts(stale, function(...) redis.call('HDEL', KEYS[1], ...) end)
in_parts(update, function(...) redis.call('HSET', KEYS[1], ...) end)
local keep = finish + 2 * window
if redis.call('PEXPIRETIME', KEYS[1]) < keep then redis.call('PEXPIREAT', KEYS[1], keep) end
if #leases > 0 then
  in_parts(leases, function(...) redis.call('ZADD', KEYS[2], 'NX', ...) end)
  in_parts(taken, function(...) redis.call('HSET', KEYS[3], ...) end)
  outlive(last, lease)
end
return {opened, now}
