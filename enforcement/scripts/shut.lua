-- Shuts a workspace until it is rebuilt from the ledger. What was decided before
-- may still be on its way there, so the fence counts from now.
--
-- ARGV[2] usage epoch
--
-- Returns {shut, now, used, peak, live}: what was known of the period and the
--           leases; shut is 0 where the workspace was not open

local state = redis.call('HMGET', KEYS[1], 'e', 'p' .. ARGV[2])
local present = present_epoch()
if not present or state[1] ~= present then return {0, now, 0, 0, 0} end
local used, peak = read_period(state[2])
local live = redis.call('ZCOUNT', KEYS[2], '(' .. now, '+inf')
redis.call('HSET', KEYS[1], 'f', present .. ' ' .. string.format('%.0f', now))
redis.call('HDEL', KEYS[1], 'e')
return {1, now, used or 0, peak or 0, live}
