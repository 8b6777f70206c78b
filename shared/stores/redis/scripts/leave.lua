-- Gives up the lease of replica ARGV[2]: what it had is the others' from now on. ARGV[1] is the prefix of all keys.
redis.call('DEL', ARGV[1] .. 'replica:' .. ARGV[2], ARGV[1] .. 'inbox:' .. ARGV[2])
redis.call('SREM', ARGV[1] .. 'replicas', ARGV[2])
return 1
