-- Leases a number to a new replica, for ARGV[2] milliseconds; ARGV[1] is the prefix of all keys, ARGV[3] the token of
-- the lease.
--
-- Invariant: numbers are below 2^20 and ascend, so that one is leased again only after a million others, and never
-- while its lease lasts.
local prefix, milliseconds = ARGV[1], ARGV[2]
local number
repeat
  number = redis.call('INCR', prefix .. 'numbers') % 1048576
until redis.call('EXISTS', prefix .. 'replica:' .. number) == 0
redis.call('HSET', prefix .. 'replica:' .. number, 'batch', 0, 'token', ARGV[3])
redis.call('PEXPIRE', prefix .. 'replica:' .. number, milliseconds)
redis.call('SADD', prefix .. 'replicas', number)
redis.call('DEL', prefix .. 'inbox:' .. number)
return number
