-- Sessions. Each is a hash:
--   record, revision   who it is, and how often that has changed
--   owner              whose it is: no principal is '', one is '=' and its key
--   idle               milliseconds that it is kept where no replica has it
--   holders, lapsed    the replicas that have it, and those of them that were not asked for it for long: ' 1  2 '
--   c:ID               the replica that serves the request of that id, which is written as JSON
--   w:URI              the replica that tells of that resource
--   kept               bytes that its streams keep, or more
-- Invariants: an id is claimed by one replica that is alive, at most. Of a resource one replica tells, at most. The
-- record changes by compare and set. It is there for twice `idle` after it was used at last, or renewed by a holder, and
-- as long as the lease of that one.

local function session_key(id)
  return prefix .. 's:' .. id
end

local function holds(list, number)
  return list and string.find(list, ' ' .. number .. ' ', 1, true) ~= nil
end

-- The holders that are alive, but for `number`, and as a list.
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

-- This replica no longer has the session: what it told of, others have to.
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

-- This replica has it, and keeps it when it renews its lease, or now and then.
local function keep_session(key, idle)
  call('PEXPIRE', key, math.max(2 * idle, call('PTTL', prefix .. 'replica:' .. me)))
end

function operations.create(id, record, owner, idle)
  local key = session_key(id)
  call('HSET', key, 'record', record, 'revision', 1, 'owner', owner, 'idle', idle, 'holders', ' ' .. me .. ' ')
  keep_session(key, idle)
  return 1
end

-- The revision, the record where that is not the `known` one, and 1 where all ids are served here from now on.
-- Nothing where there is no such session of that owner.
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
    keep_session(key, found[5])  -- from now on this replica sees to it that it lasts
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

-- Somebody else may have claimed these ids meanwhile, where this replica was lost and is another one now.
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

function operations.owner(id, claimed)
  local server = call('HGET', session_key(id), 'c:' .. claimed)
  return server and is_alive(server) and server
end

-- Puts `record` in the place of that of the `known` revision, and tells the other holders; the new revision. Where
-- it is another one, that and its record.
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

-- From now on this replica tells of a resource, or none does. The one that did is told.
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

-- The resources that nobody tells of any more: this replica does from now on.
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

-- 1 where the session has ended, since all that have it let it lapse.
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

function operations.release(id)
  local found = call('HMGET', session_key(id), 'holders', 'idle')
  if found[2] then
    let_go(session_key(id), found[1], found[2])
  end
end

function operations.delete(id)
  end_session(id, call('HGET', session_key(id), 'holders'))
end

-- These sessions are in use here.
function operations.keep(...)
  for _, id in ipairs({ ... }) do
    local idle = call('HGET', session_key(id), 'idle')
    if idle then
      keep_session(session_key(id), idle)
    end
  end
end
