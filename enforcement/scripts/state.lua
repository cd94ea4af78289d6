-- What the scripts share that open and rebuild a workspace.

-- All of the workspace's state, and the names of what is kept no longer.
local function kept_state(digest)
  local fields, state, stale = redis.call('HGETALL', KEYS[1]), {}, {}
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
  return state, stale
end

local function add(update, name, value)
  update[#update + 1], update[#update + 2] = name, value
end

local function add_terms(update, of, snapshot, lease, of_epoch)
  add(update, 's' .. of, snapshot)
  add(update, 'u' .. of, string.format('%.0f', lease) .. ' ' .. of_epoch)
  add(update, 'k' .. of, string.format('%.0f', now + lease + 3 * window))
end

local function write_state(update, stale, finish)
  in_parts(stale, function(...) redis.call('HDEL', KEYS[1], ...) end)
  in_parts(update, function(...) redis.call('HSET', KEYS[1], ...) end)
  local keep = finish + 2 * window
  if redis.call('PEXPIRETIME', KEYS[1]) < keep then redis.call('PEXPIREAT', KEYS[1], keep) end
end

