-- Makes known what admit found missing. What is there already stays: whoever
-- comes second changes nothing but a period's end.
--
-- ARGV[2] marker           [3] usage epoch      [4] period end (ms)
-- ARGV[5] used             [6] peak             what the database knows of the period
-- ARGV[7] snapshot digest  [8] snapshot         [9] lease (ms)
-- ARGV[10…] two for each lease the database knows: execution, expiry (ms)
--
-- Returns {opened, now}: opened is a sum of 1 workspace, 2 period, 4 snapshot

local epoch, finish, digest = ARGV[3], tonumber(ARGV[4]), ARGV[7]
local used, peak, lease = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[9])
local fields = redis.call('HGETALL', KEYS[1])
local state, stale = {}, {}
for i = 1, #fields, 2 do
  local name, value = fields[i], fields[i + 1]
  local kind = string.sub(name, 1, 1)
  state[name] = value
  if kind == 'p' then
    local _, _, period_end = read_period(value)
    if period_end + 2 * window < now then stale[#stale + 1] = name end
  elseif kind == 'k' and tonumber(value) < now then
    local of = string.sub(name, 2)
    for _, each in ipairs({'k', 's', 'u'}) do stale[#stale + 1] = each .. of end
  end
end

local opened, update = 0, {}
local leases, taken, last = {}, {}, 0
if not state['e'] then
  opened = 1
  update = {'e', ARGV[2]}
  for i = 10, #ARGV, 2 do
    local id, expiry = ARGV[i], tonumber(ARGV[i + 1])
    local record = find(id)
    if expiry > now and (not record or status(record) == 'A') then
      leases[#leases + 1], leases[#leases + 2] = expiry, id
      taken[#taken + 1] = id
      taken[#taken + 1] = record or struct.pack('<c1c8c8I5I4I4I5', 'A',
        string.rep('\0', 8), digest, used, #leases / 2, peak, since)
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
update[#update + 1], update[#update + 2] = 'p' .. epoch, pack_period(known, known_peak, finish)
if not state['k' .. digest] then
  opened = opened + 4
  for name, value in pairs({s = ARGV[8], u = ARGV[9] .. ' ' .. epoch}) do
    update[#update + 1], update[#update + 2] = name .. digest, value
  end
end
update[#update + 1] = 'k' .. digest
update[#update + 1] = string.format('%.0f', now + lease + 3 * window)

if #stale > 0 then redis.call('HDEL', KEYS[1], unpack(stale)) end
redis.call('HSET', KEYS[1], unpack(update))
local keep = finish + 2 * window
if redis.call('PEXPIRETIME', KEYS[1]) < keep then redis.call('PEXPIREAT', KEYS[1], keep) end
if #leases > 0 then
  for i = 1, #leases, 2 do redis.call('ZADD', KEYS[2], 'NX', leases[i], leases[i + 1]) end
  redis.call('HSET', KEYS[3], unpack(taken))
  outlive(last, lease)
end
return {opened, now}
