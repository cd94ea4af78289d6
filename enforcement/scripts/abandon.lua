-- Lets others rebuild this workspace, which the caller could not.
--
-- ARGV[2] token of the caller
--
-- Returns {0, now}

local by = string.match(redis.call('HGET', KEYS[1], 'g') or '', '^%S+')
if by == ARGV[2] then redis.call('HDEL', KEYS[1], 'g') end
return {0, now}
