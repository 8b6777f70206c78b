local lease = prefix .. 'replica:' .. me
local state = call('HMGET', lease, 'token', 'batch', 'answer')
if state[1] ~= token then
  return redis.error_reply('LEASE this replica has lost its lease')
end
if state[2] == batch then
  return cmsgpack.unpack(state[3])
end
if tonumber(batch) < tonumber(state[2]) then
  return redis.error_reply('LATE another batch has been done since')
end
-- The first write: if memory is short, it fails before anything has changed.
call('HSET', lease, 'batch', batch)

local inbox = call('LRANGE', prefix .. 'inbox:' .. me, 0, -1)
if #inbox > 0 then
  call('DEL', prefix .. 'inbox:' .. me)
end
local replies, at = {}, 5
while at <= #ARGV do
  local name, count = ARGV[at], tonumber(ARGV[at + 1])
  local arguments = {}
  for i = 1, count do
    arguments[i] = ARGV[at + 1 + i]
  end
  at = at + 2 + count
  local done, reply = pcall(function()
    return operations[name](unpack(arguments))  -- `unpack` fails if there are thousands
  end)
  if not done then
    reply = { 'ERROR', type(reply) == 'table' and reply.err or tostring(reply) }
  end
  replies[#replies + 1] = reply or false
end
local answer = { inbox, replies }
call('HSET', lease, 'answer', cmsgpack.pack(answer))
return answer
