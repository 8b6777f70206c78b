-- Streams of sessions. Each is a list of messages, and a hash:
--   owner, ids       the replica that serves the requests of these ids, each JSON on a line; the session's own has none
--   last, dropped    the number of the last message, and of the last that is kept no more
--   size             bytes of the messages that are kept
--   sent             of the session's own: the number of the last that a reader has taken
--   reader           the replica that has the reader, or ''
--   left             how often a reader has left it in order
--   behind           bytes that a reader elsewhere has not taken yet, of a stream of requests
--   over             '' while more may come, else 'answered', or 'ended' with the refusal that is told
--   refusal          why there will be no answer
-- Invariants: messages are numbered from 1 on, without a gap, in the order in which they came. Whoever is the reader
-- has got, or has in its inbox, every message from the one on that it asked for. After the end none is added, nor after
-- that of the session.

local function stream_keys(id, name)
  return prefix .. 'e:' .. id .. ':' .. name, prefix .. 'm:' .. id .. ':' .. name
end

local function names_key(id)
  return prefix .. 'n:' .. id
end

local function expire(id, name, milliseconds)
  local hash, list = stream_keys(id, name)
  call('PEXPIRE', hash, milliseconds)
  call('PEXPIRE', list, milliseconds)
end

local function is_there(id)
  return call('EXISTS', session_key(id)) == 1
end

-- A stream that may go on is there as long as its session.
local function last(id, name)
  local milliseconds = call('PTTL', session_key(id))
  expire(id, name, milliseconds)
  call('PEXPIRE', names_key(id), milliseconds)
end

local function forget(id, name)
  local hash, list = stream_keys(id, name)
  call('DEL', hash, list)
  call('LREM', names_key(id), 0, name)
end

-- Drops the oldest messages of a stream until it keeps no more than `bytes` and `events`; but for the answer.
local function trim(hash, list, bytes, events, floor)
  local found = call('HMGET', hash, 'last', 'dropped', 'size')
  local count, size, gone = found[1] - found[2], tonumber(found[3]), 0
  while count > floor and (size > bytes or count > events) do
    size, count, gone = size - #call('LPOP', list), count - 1, gone + 1
  end
  if gone > 0 then
    call('HSET', hash, 'size', size, 'dropped', found[2] + gone)
  end
  return size
end

-- Has the streams of a session keep no more than `bytes` together: those that were shown first give first.
local function make_room(id, bytes)
  local kept, names = 0, call('LRANGE', names_key(id), 0, -1)
  for _, name in ipairs(names) do
    kept = kept + (call('HGET', (stream_keys(id, name)), 'size') or 0)
  end
  for _, name in ipairs(names) do
    local hash, list = stream_keys(id, name)
    local size = tonumber(call('HGET', hash, 'size'))
    if kept > bytes and size then
      kept = kept - size + trim(hash, list, math.max(0, size - (kept - bytes)), math.huge, 1)
    end
  end
  call('HSET', session_key(id), 'kept', kept)
end

-- Adds a message; its number, and 1 where its reader is here, who is not told but by this. Then the bytes that a
-- reader elsewhere has not taken.
local function add(id, name, message, kind, limits)
  local hash, list = stream_keys(id, name)
  local number = call('HINCRBY', hash, 'last', 1)
  call('RPUSH', list, message)
  local size = call('HINCRBY', hash, 'size', #message)
  if size > limits.bytes or number - call('HGET', hash, 'dropped') > limits.events then
    trim(hash, list, limits.bytes, limits.events, kind == 'answer' and 1 or 0)
  end
  if call('HINCRBY', session_key(id), 'kept', #message) > limits.session then
    make_room(id, limits.session)
  end
  local reader = call('HGET', hash, 'reader')
  if reader == me then
    return { number, 1, 0 }
  end
  if reader ~= '' and tell(reader, kind, id, name, tostring(number), message) == 1 then
    return { number, 0, call('HINCRBY', hash, 'behind', #message) }
  end
  return { number, 0, 0 }
end

-- Of the streams that have ended, and that nobody reads, a session keeps the last few.
local function drop_oldest(id, most)
  local names = call('LRANGE', names_key(id), 0, -1)
  local more = #names - most
  for _, name in ipairs(names) do
    if more <= 0 then
      return
    end
    local found = call('HMGET', (stream_keys(id, name)), 'over', 'reader')
    if not found[1] or (found[1] ~= '' and not (found[2] ~= '' and is_alive(found[2]))) then
      forget(id, name)
      more = more - 1
    end
  end
end

local function begin(id, name, owner, ids, reader)
  local hash = stream_keys(id, name)
  call('HSET', hash, 'owner', owner, 'ids', ids, 'last', 0, 'dropped', 0, 'size', 0, 'sent', 0, 'reader', reader,
    'over', '')
  call('RPUSH', names_key(id), name)
  last(id, name)
end

-- What the requests of a stream get whose replica is gone.
local function answer_for_dead(id, name, limits, milliseconds)
  local hash = stream_keys(id, name)
  local found = call('HMGET', hash, 'owner', 'ids', 'over')
  if found[1] == '' or found[3] ~= '' or is_alive(found[1]) or not is_there(id) then
    return
  end
  local head, tail = '{"jsonrpc":"2.0","id":', ',"error":{"code":-32603,"message":"the replica that served this is '
    .. 'gone; whether it was done is not known","data":{"mayHaveRun":true}}}'
  for request in string.gmatch(found[2], '[^\n]+') do
    local message = head .. request .. tail
    local added = add(id, name, message, 'message', limits)
    if added[2] == 1 then
      tell(me, 'message', id, name, tostring(added[1]), message)
    end
  end
  call('HSET', hash, 'over', 'answered')
  local reader = call('HGET', hash, 'reader')
  if reader ~= '' then
    tell(reader, 'over', id, name, 'answered', '')
  end
  expire(id, name, milliseconds)
end

-- A stream may be found from now on. It is read here.
function operations.show(id, name, ids)
  if not is_there(id) then
    return 0
  end
  begin(id, name, me, ids, me)
  return 1
end

-- Adds a message. `mode` is '' for any; 'once' where it is not to wait twice, 'answer' for the last one; 'shared' where
-- each replica that has the session adds it, of which that of the reader counts, or else the first. The number of the
-- message, 0 where it is not added; then as `add`. Of the session's own stream `own` is '1'.
function operations.append(id, name, own, message, mode, bytes, events, session, streams, ended)
  if not is_there(id) then
    forget(id, name)
    return { 0, 0, 0 }
  end
  local hash, list = stream_keys(id, name)
  local found = call('HMGET', hash, 'over', 'reader', 'sent', 'dropped')
  if not found[1] then
    if own ~= '1' then
      return { 0, 0, 0 }
    end
    begin(id, name, '', '', '')
    found = { '', '', '0', '0' }
  end
  if found[1] ~= '' then
    return { 0, 0, 0 }
  end
  local is_read = found[2] ~= '' and is_alive(found[2])
  if mode == 'shared' and is_read and found[2] ~= me then
    return { 0, 0, 0 }
  end
  if (mode == 'once' or mode == 'shared') and not is_read then
    for _, waiting in ipairs(call('LRANGE', list, math.max(found[3] - found[4], 0), -1)) do
      if waiting == message then
        return { 0, 0, 0 }
      end
    end
  end
  local limits = { bytes = tonumber(bytes), events = tonumber(events), session = tonumber(session) }
  local added = add(id, name, message, mode == 'answer' and 'answer' or 'message', limits)
  if mode == 'answer' then
    call('HSET', hash, 'over', 'answered')
    drop_oldest(id, tonumber(streams))
    expire(id, name, ended)
  else
    last(id, name)
  end
  return added
end

-- Nothing more will come. Without a refusal nobody comes back for it.
function operations.finish(id, name, refusal, milliseconds)
  local hash = stream_keys(id, name)
  local found = call('HMGET', hash, 'over', 'reader')
  if not found[1] or found[1] ~= '' then
    return 0
  end
  if found[2] ~= '' and found[2] ~= me then
    tell(found[2], 'over', id, name, 'ended', refusal)
  end
  if refusal == '' then
    forget(id, name)
  else
    call('HSET', hash, 'over', 'ended', 'refusal', refusal)
    expire(id, name, milliseconds)
  end
  return 1
end

-- How a stream is: the numbers of the last message, and of the last that is kept no more; how it is over; 1 where
-- somebody reads it, and the replica of its requests. What a dead replica owes is answered first.
function operations.find(id, name, own, bytes, events, session, ended)
  local hash = stream_keys(id, name)
  if call('EXISTS', hash) == 0 then
    return own == '1' and { 0, 0, '', 0, '' }
  end
  local limits = { bytes = tonumber(bytes), events = tonumber(events), session = tonumber(session) }
  answer_for_dead(id, name, limits, ended)
  local found = call('HMGET', hash, 'last', 'dropped', 'over', 'reader', 'owner')
  local is_read = found[4] ~= '' and is_alive(found[4])
  return { tonumber(found[1]), tonumber(found[2]), found[3], is_read and 1 or 0, found[5] }
end

-- A reader here takes what comes after that number, or what nobody has taken where there is none; another one is cut
-- off. The number before the first message, how the stream is over, its refusal, and the messages. Nothing where not
-- all of them are kept.
function operations.read(id, name, own, after)
  local hash, list = stream_keys(id, name)
  if call('EXISTS', hash) == 0 then
    if own ~= '1' or not is_there(id) then
      return false
    end
    begin(id, name, '', '', '')
  end
  local found = call('HMGET', hash, 'reader', 'sent', 'dropped', 'over', 'refusal', 'last')
  local from = tonumber(after) or math.max(found[2], found[3])
  if from < tonumber(found[3]) or from > tonumber(found[6]) then
    return false
  end
  if found[1] ~= '' and found[1] ~= me then
    tell(found[1], 'cut', id, name)
  end
  local reply, behind = { from, found[4], found[5] or '' }, 0
  for _, message in ipairs(call('LRANGE', list, from - found[3], -1)) do
    reply[#reply + 1] = message  -- not by `unpack`, which takes a few thousands at most
    behind = behind + #message
  end
  call('HSET', hash, 'reader', me, 'behind', behind)
  return reply
end

-- A reader of the session's own stream has taken all up to that number.
function operations.sent(id, name, number)
  local hash = stream_keys(id, name)
  local before = call('HGET', hash, 'sent')
  if before and tonumber(before) < tonumber(number) then
    call('HSET', hash, 'sent', number)
  end
end

-- A reader here has taken so many bytes of a stream of requests: the replica that serves them may go on.
function operations.took(id, name, bytes)
  local hash = stream_keys(id, name)
  local found = call('HMGET', hash, 'owner', 'reader', 'over')
  if found[2] == me and found[3] == '' then
    tell(found[1], 'took', id, name, tostring(call('HINCRBY', hash, 'behind', -bytes)))
  end
end

-- Nobody reads here any more. How often that has been said of the stream, 0 where somebody else reads it.
function operations.unread(id, name, ended)
  local hash = stream_keys(id, name)
  local found = call('HMGET', hash, 'reader', 'over')
  if found[1] ~= me then
    return 0
  end
  call('HSET', hash, 'reader', '')
  if found[2] ~= '' then
    expire(id, name, ended)
  end
  return call('HINCRBY', hash, 'left', 1)
end

-- Has a reader that is elsewhere pause.
function operations.pause(id, name, retry)
  local reader = call('HGET', (stream_keys(id, name)), 'reader')
  if reader and reader ~= '' and reader ~= me then
    tell(reader, 'pause', id, name, retry)
  end
end

-- Answers what a replica owes that is gone.
function operations.owe(id, name, bytes, events, session, ended)
  if call('EXISTS', (stream_keys(id, name))) == 1 then
    local limits = { bytes = tonumber(bytes), events = tonumber(events), session = tonumber(session) }
    answer_for_dead(id, name, limits, ended)
  end
end

-- What was taken is kept no more, if nobody has come since a reader left: neither one that left later, nor one
-- whose replica is gone, since that one's client may not have got what was taken for it.
function operations.forget_sent(id, name, left)
  local hash, list = stream_keys(id, name)
  local found = call('HMGET', hash, 'sent', 'dropped', 'reader', 'left')
  if found[3] == '' and found[4] == left then
    trim(hash, list, -1, 0, call('LLEN', list) - math.max(found[1] - found[2], 0))
  end
end

-- These streams go on: what they keep lasts.
function operations.keep_streams(...)
  local list = { ... }
  for i = 1, #list, 2 do
    last(list[i], list[i + 1])
  end
end

-- A session has ended: so have its streams.
function operations.drop(id)
  for _, name in ipairs(call('LRANGE', names_key(id), 0, -1)) do
    local hash, list = stream_keys(id, name)
    call('DEL', hash, list)
  end
  call('DEL', names_key(id))
end
