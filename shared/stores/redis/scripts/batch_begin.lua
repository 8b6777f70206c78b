-- Runs a batch of operations of one replica as one script: all of them in order, or none.
--
-- Invariants:
--   * Only a replica with a valid lease changes anything. A number is leased once: a replica whose lease has expired
--     never acts again, however long it was suspended. The token distinguishes its lease from that of another replica
--     that got the same number after Redis lost its data.
--   * A batch with a number takes effect once. If it is sent again after a connection broke, the first answer is
--     repeated. A batch that arrives late, on an abandoned connection, after its successor, changes nothing.
--   * Nothing else happens between the operations of a batch.
--
-- ARGV: the prefix of all keys, the number of the replica, the token of its lease, the number of the batch, then for each
-- operation its name, the number of its arguments, and the arguments. Returns the previous contents of the
-- replica's inbox, as entries of ENTRY texts each, and a reply for each operation.
local prefix, me, token, batch = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local call = redis.call
local operations = {}
local ENTRY = 5
local INBOX_MS = 600000

local living = {}

local function is_alive(number)
  if living[number] == nil then
    living[number] = call('EXISTS', prefix .. 'replica:' .. number) == 1
  end
  return living[number]
end

-- Puts an entry into the inbox of a replica, and wakes it for the first entry. Returns 0 if the replica is not alive.
local function tell(number, kind, ...)
  if not is_alive(number) then
    return 0
  end
  local entry = { kind, ... }
  for i = 1, ENTRY do
    entry[i] = entry[i] or ''
  end
  local inbox = prefix .. 'inbox:' .. number
  if call('RPUSH', inbox, unpack(entry)) == ENTRY then
    call('PEXPIRE', inbox, INBOX_MS)
    call('PUBLISH', prefix .. 'wake:' .. number, '')
  end
  return 1
end
