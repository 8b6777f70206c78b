-- Sessions. Each is a hash:
--   record, revision   its persistent state, and the number of changes to that state
--   owner              '' for no principal, otherwise '=' and the principal's key
--   idle               milliseconds for which it is stored if no replica holds it
--   holders, lapsed    the replicas that hold it, and those that received no request for it for its idle time: ' 1  2 '
--   c:ID               the replica that serves the request with that id, which is written as JSON
--   w:URI              the replica that reports changes of that resource
--   kept               an upper bound for the bytes stored in its streams
-- Invariants: at most one living replica has claimed an id. At most one replica reports a resource. The record is
-- changed by compare and set. A session is stored for twice `idle` after its last use or renewal by a holder, and at
-- least as long as that holder's lease.

local function session_key(id)
  return prefix .. 's:' .. id
end

local function holds(list, number)
  return list and string.find(list, ' ' .. number .. ' ', 1, true) ~= nil
end

-- Returns the living holders except `number`, as a list.
local function others(list, number)
  local found = {}
  for holder in string.gmatch(list or '', '%d+') do
    if holder ~= number and is_alive(holder) then
      found[#found + 1] = holder
    end
  end
  return found
end

local function tell_others(list, kind, ...)
  for _, holder in ipairs(others(list, me)) do
    tell(holder, kind, ...)
  end
end

-- Removes this replica from the holders. Its resources are left for other replicas to report.
local function let_go(key, list, idle)
  local left = others(list, me)
  call('HSET', key, 'holders', #left > 0 and ' ' .. table.concat(left, '  ') .. ' ' or '')
  local all = call('HGETALL', key)
  for i = 1, #all, 2 do
    if string.sub(all[i], 1, 2) == 'w:' and all[i + 1] == me then
      call('HSET', key, all[i], '')
    end
  end
  if #left == 0 then
    call('PEXPIRE', key, idle)
  end
end

-- Extends the session's lifetime. Called when this replica begins to hold it, and regularly after that.
local function keep_session(key, idle)
  call('PEXPIRE', key, math.max(2 * idle, call('PTTL', prefix .. 'replica:' .. me)))
end

function operations.create(id, record, owner, idle)
  local key = session_key(id)
  call('HSET', key, 'record', record, 'revision', 1, 'owner', owner, 'idle', idle, 'holders', ' ' .. me .. ' ')
  keep_session(key, idle)
  return 1
end

-- Returns the revision, the record unless the caller knows that revision, and 1 if this replica now serves all ids.
-- Returns nothing if the owner has no such session.
function operations.enter(id, owner, known, ...)
  local key, ids = session_key(id), { ... }
  local fields = { 'owner', 'revision', 'holders', 'lapsed', 'idle' }
  for i, claimed in ipairs(ids) do
    fields[5 + i] = 'c:' .. claimed
  end
  local found = call('HMGET', key, unpack(fields))
  if found[1] ~= owner then
    return false
  end
  local is_held = holds(found[3], me)
  if not is_held then
    call('HSET', key, 'holders', found[3] .. ' ' .. me .. ' ')
  end
  if not is_held or known == '' then
    keep_session(key, found[5])  -- this replica now holds it
  end
  if found[4] then
    call('HDEL', key, 'lapsed')
  end
  local claims = {}
  for i, claimed in ipairs(ids) do
    local server = found[5 + i]
    if server and is_alive(server) then
      claims = false
      break
    end
    claims[2 * i - 1], claims[2 * i] = 'c:' .. claimed, me
  end
  if claims and #claims > 0 then
    call('HSET', key, unpack(claims))
  end
  local record = found[2] ~= known and call('HGET', key, 'record')
  return { found[2], record, claims and 1 or 0 }
end

-- Ends this replica's claims to these ids. Other claims remain: if this replica was lost and has a new number, other
-- replicas may have claimed the ids since then.
function operations.leave(id, ...)
  local key, fields = session_key(id), { ... }
  for i, claimed in ipairs(fields) do
    fields[i] = 'c:' .. claimed
  end
  for i, server in ipairs(call('HMGET', key, unpack(fields))) do
    if server == me then
      call('HDEL', key, fields[i])
    end
  end
end

-- Returns the replica that serves the request with the id `claimed`; nothing if no living replica does.
function operations.serving_replica(id, claimed)
  local server = call('HGET', session_key(id), 'c:' .. claimed)
  return server and is_alive(server) and server
end

-- Replaces the record if its revision is `known`, notifies the other holders, and returns the new revision. Otherwise
-- returns the present revision and record.
function operations.update(id, known, record)
  local key = session_key(id)
  local found = call('HMGET', key, 'revision', 'record', 'holders')
  if not found[1] then
    return false
  end
  if found[1] ~= known then
    return { found[1], found[2] }
  end
  local revision = call('HINCRBY', key, 'revision', 1)
  call('HSET', key, 'record', record)
  tell_others(found[3], 'snapshot', id, tostring(revision), record)
  return { tostring(revision), false }
end

-- Makes this replica report a resource, or none if it is not `watched`. Notifies the replica that reported it.
function operations.watch(id, uri, watched)
  local key = session_key(id)
  local found = call('HMGET', key, 'owner', 'w:' .. uri)
  if not found[1] then
    return
  end
  if found[2] and found[2] ~= '' and found[2] ~= me then
    tell(found[2], 'unwatch', id, uri)
  end
  if watched == '1' then
    call('HSET', key, 'w:' .. uri, me)
  elseif found[2] then
    call('HDEL', key, 'w:' .. uri)
  end
end

-- Takes over the resources that no replica reports anymore, and returns them.
function operations.adopt(id)
  local key, uris = session_key(id), {}
  local all = call('HGETALL', key)
  for i = 1, #all, 2 do
    if string.sub(all[i], 1, 2) == 'w:' and (all[i + 1] == '' or not is_alive(all[i + 1])) then
      call('HSET', key, all[i], me)
      uris[#uris + 1] = string.sub(all[i], 3)
    end
  end
  return uris
end

local function end_session(id, list)
  tell_others(list, 'ended', id)
  call('DEL', session_key(id))
end

-- Records that this replica received no request for the session for its idle time. Returns 1 if the session has ended,
-- because this is now recorded for all its holders.
function operations.lapse(id, busy)
  local key = session_key(id)
  local found = call('HMGET', key, 'holders', 'lapsed', 'idle')
  if not found[3] then
    return 1
  end
  local lapsed = (found[2] or '') .. ' ' .. me .. ' '
  local all_did = true
  for _, holder in ipairs(others(found[1], me)) do
    all_did = all_did and holds(lapsed, holder)
  end
  if all_did then
    end_session(id, found[1])
    return 1
  end
  call('HSET', key, 'lapsed', lapsed)
  if busy == '0' then
    let_go(key, found[1], found[3])
  end
  return 0
end

-- Records that this replica no longer holds the session.
function operations.release(id)
  local found = call('HMGET', session_key(id), 'holders', 'idle')
  if found[2] then
    let_go(session_key(id), found[1], found[2])
  end
end

function operations.delete(id)
  end_session(id, call('HGET', session_key(id), 'holders'))
end

-- Extends the lifetime of these sessions, which this replica holds.
function operations.keep(...)
  for _, id in ipairs({ ... }) do
    local idle = call('HGET', session_key(id), 'idle')
    if idle then
      keep_session(session_key(id), idle)
    end
  end
end
