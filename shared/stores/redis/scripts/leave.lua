-- Ends the lease of replica ARGV[2], whose token is ARGV[3], so that other replicas may take over its sessions. ARGV[1]
-- is the prefix of all keys.
--
-- Invariant: a lease with another token is not changed.
local lease = ARGV[1] .. 'replica:' .. ARGV[2]
if redis.call('HGET', lease, 'token') ~= ARGV[3] then
  return 0
end
redis.call('DEL', lease, ARGV[1] .. 'inbox:' .. ARGV[2])
redis.call('SREM', ARGV[1] .. 'replicas', ARGV[2])
return 1
