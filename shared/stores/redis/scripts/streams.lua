-- Streams of sessions. Each is a list of messages, and a hash:
--   owner, ids       the replica that serves the requests with these ids, one JSON text per line; the session's own
--                    stream has none
--   last, dropped    the numbers of the last message, and of the last one that is no longer stored
--   size             the bytes of the stored messages
--   sent             of the session's own stream: the number of the last message that a reader has taken
--   reader           the replica with the reader, or ''
--   left             how many times a reader has left in the normal way
--   behind           of a stream of requests: the bytes that a reader on another replica has not taken yet
--   over             '' while messages may be added, then 'answered', or 'ended' with a refusal
--   refusal          the reason why there will be no answer
-- Invariants: messages are numbered from 1 without gaps, in the order in which they were added. The reader has
-- received, or has in its inbox, every message from the requested one on. No message is added after the end of the
-- stream or of its session.

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

-- Gives the stream, which has not ended, the lifetime of its session.
local function keep_stream(id, name)
  local milliseconds = call('PTTL', session_key(id))
  expire(id, name, milliseconds)
  call('PEXPIRE', names_key(id), milliseconds)
end

local function forget(id, name)
  local hash, list = stream_keys(id, name)
  call('DEL', hash, list)
  call('LREM', names_key(id), 0, name)
end

-- Drops the oldest messages of a stream until it is within `bytes` and `events`, but never the last `floor` messages.
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

-- Reduces the streams of a session to `bytes` in total, beginning with those that were shown first.
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

-- Adds a message. Returns its number; 1 if the reader is on this replica, whose inbox gets no entry for it; and the
-- bytes that a reader on another replica has not taken.
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

-- Deletes the oldest ended streams without a reader while the session has more than `most` streams.
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
  keep_stream(id, name)
end

-- Answers the requests of a stream with an error if the replica that served them no longer exists.
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

-- Makes a stream available to other replicas. Its reader is on this one.
function operations.show(id, name, ids)
  if not is_there(id) then
    return 0
  end
  begin(id, name, me, ids, me)
  return 1
end

-- Adds a message. `mode` is '', 'once' if an equal message must not wait twice, 'answer' for the last message, or
-- 'shared' if each replica that holds the session adds it: then the reader's replica adds it, or the first one if there
-- is no reader. Returns the same as `add`, with the number 0 if nothing was added. `own` is '1' for the session's own
-- stream.
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
    keep_stream(id, name)
  end
  return added
end

-- Ends the stream. Without a refusal it is deleted, since no client will reconnect for it.
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

-- Returns the state of a stream: the numbers of the last message and of the last one that is no longer stored, `over`,
-- 1 if it has a reader, and the replica of its requests. Requests of a dead replica are answered first.
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

-- Makes this replica the reader of the messages after the number `after`, or of those not taken yet if `after` is ''.
-- The previous reader is cut off. Returns the number before the first message, `over`, the refusal, and the messages;
-- nothing if some of them are no longer stored.
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
    reply[#reply + 1] = message  -- not with `unpack`, which is limited to a few thousand
    behind = behind + #message
  end
  call('HSET', hash, 'reader', me, 'behind', behind)
  return reply
end

-- Records that a reader of the session's own stream has taken all messages up to `number`.
function operations.sent(id, name, number)
  local hash = stream_keys(id, name)
  local before = call('HGET', hash, 'sent')
  if before and tonumber(before) < tonumber(number) then
    call('HSET', hash, 'sent', number)
  end
end

-- Records that the reader on this replica has taken `bytes` of a stream of requests, and notifies the replica that
-- serves those requests.
function operations.took(id, name, bytes)
  local hash = stream_keys(id, name)
  local found = call('HMGET', hash, 'owner', 'reader', 'over')
  if found[2] == me and found[3] == '' then
    tell(found[1], 'took', id, name, tostring(call('HINCRBY', hash, 'behind', -bytes)))
  end
end

-- Records that the reader on this replica has left. Returns how many times readers have left; 0 if the reader is on
-- another replica.
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

-- Makes a reader on another replica pause.
function operations.pause(id, name, retry)
  local reader = call('HGET', (stream_keys(id, name)), 'reader')
  if reader and reader ~= '' and reader ~= me then
    tell(reader, 'pause', id, name, retry)
  end
end

-- Answers the requests of a stream with an error if the replica that served them no longer exists.
function operations.answer_for_dead(id, name, bytes, events, session, ended)
  if call('EXISTS', (stream_keys(id, name))) == 1 then
    local limits = { bytes = tonumber(bytes), events = tonumber(events), session = tonumber(session) }
    answer_for_dead(id, name, limits, ended)
  end
end

-- Deletes the messages that were taken, if no reader has come since readers had left `left` times. A later
-- reader may have left too, or its replica may have died: then its client may not have received all that was taken.
function operations.forget_sent(id, name, left)
  local hash, list = stream_keys(id, name)
  local found = call('HMGET', hash, 'sent', 'dropped', 'reader', 'left')
  if found[3] == '' and found[4] == left then
    trim(hash, list, -1, 0, call('LLEN', list) - math.max(found[1] - found[2], 0))
  end
end

-- Extends the lifetime of these streams, which have not ended.
function operations.keep_streams(...)
  local list = { ... }
  for i = 1, #list, 2 do
    keep_stream(list[i], list[i + 1])
  end
end

-- Deletes all streams of a session that has ended.
function operations.drop(id)
  for _, name in ipairs(call('LRANGE', names_key(id), 0, -1)) do
    local hash, list = stream_keys(id, name)
    call('DEL', hash, list)
  end
  call('DEL', names_key(id))
end
