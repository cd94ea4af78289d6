-- What does this Redis know of a workspace's usage? Reads only.
--
-- ARGV[2] usage epoch
--
-- Returns {known, now, used, peak, live}: known is 1 where the period is open

local used, peak = read_period(redis.call('HGET', KEYS[1], 'p' .. ARGV[2]))
local live = redis.call('ZCOUNT', KEYS[2], '(' .. now, '+inf')
return {used and 1 or 0, now, used or 0, peak or 0, live}
