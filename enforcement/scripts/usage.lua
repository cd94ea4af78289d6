-- What does this Redis know of a workspace's usage? Reads only.
--
-- ARGV[2] usage epoch
--
-- Returns {known, now, used, peak, live, workspace, ahead, first}: known is 1 where
--           the period is open, and workspace 1 where the leases are known; ahead is
--           how far the arrival time of the start rate is ahead of now (µs, rounded
--           up), and first the soonest expiry of a live lease (ms, 0 none)

local state = redis.call('HMGET', KEYS[1], 'p' .. ARGV[2], 'e', 't')
local present = present_epoch()
local open = present and state[2] == present
local used, peak = read_period(open and state[1])
local live = redis.call('ZCOUNT', KEYS[2], '(' .. now, '+inf')
local first = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
local ahead = math.min(math.max(tonumber(state[3] or 0) - micros, 0), 60000000)
return {used and 1 or 0, now, used or 0, peak or 0, live, open and 1 or 0, math.ceil(ahead), tonumber(first[2] or 0)}
