-- What one replica has to do in the store, as one script: its operations, in order, or none of them.
--
-- Invariants:
--   * Only a replica whose lease is there changes anything. A number is leased once: one whose lease has run out never
--     acts again, however long it was stopped in between. Its token tells the lease from that of another replica which
--     got the same number as Redis had lost what it knew.
--   * A batch of a number takes effect once. Sent again, after a connection broke, it is answered as the first time.
--     One that comes late, on a connection that was given up, after the next one was done, changes nothing.
--   * Nothing else happens between the operations of a batch.
--
-- ARGV: the prefix of all keys, the number of the replica, the token of its lease, the number of the batch, and then for
-- each operation its name, how many arguments it has, and these. The answer: what was in the replica's inbox before, as entries of
-- ENTRY texts each, and a reply for each operation.
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

-- Puts an entry into the inbox of a replica that is alive, which is woken for the first one.
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
