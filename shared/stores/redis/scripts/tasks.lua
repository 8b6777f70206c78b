-- Tasks. Each is a hash: the record, its revision, client and principal, and `owner`, the replica that runs the task.
-- Other keys:
--   tasks          all tasks, by the time at which they expire
--   tc:CLIENT      the tasks of a client, by the time at which they expire
--   tp:PRINCIPAL   the tasks of a principal, by the time of their creation
--   th:ID          the replicas to notify of changes to a task
--   results        the size in bytes of each task's result, and the task's client
--   sizes          the total size of all results, and that of each client's results
-- `tasks`, `results` and `sizes` expire with the last task.
--
-- Invariants: a record is changed by compare and set of its revision. The number of tasks and the bytes of their
-- results are within the limits.

local function task_key(id)
  return prefix .. 't:' .. id
end

local function tell_hearers(id)
  for _, number in ipairs(call('SMEMBERS', prefix .. 'th:' .. id)) do
    if tell(number, 'task', id) == 0 then
      call('SREM', prefix .. 'th:' .. id, number)
    end
  end
end

local function lengthen(key, milliseconds)
  if call('PTTL', key) < tonumber(milliseconds) then
    call('PEXPIRE', key, milliseconds)
  end
end

-- Makes the keys for all tasks expire with the last task.
local function keep_sizes()
  local milliseconds = call('PTTL', prefix .. 'tasks')
  call('PEXPIRE', prefix .. 'results', milliseconds)
  call('PEXPIRE', prefix .. 'sizes', milliseconds)
end

-- Records that a result of `client` now has `after` bytes instead of `before`.
local function weigh(id, client, before, after)
  if after == 0 then
    call('HDEL', prefix .. 'results', id)
  else
    call('HSET', prefix .. 'results', id, after .. ' ' .. client)
  end
  call('HINCRBY', prefix .. 'sizes', 'all', after - before)
  if call('HINCRBY', prefix .. 'sizes', '=' .. client, after - before) <= 0 then
    call('HDEL', prefix .. 'sizes', '=' .. client)
  end
  keep_sizes()
end

local function size_of(id)
  local found = call('HGET', prefix .. 'results', id)
  if not found then
    return 0, ''
  end
  local size, client = string.match(found, '^(%d+) (.*)$')
  return tonumber(size), client
end

local function forget_task(id)
  local found = call('HMGET', task_key(id), 'client', 'principal')
  local size, client = size_of(id)
  if size > 0 then
    weigh(id, client, size, 0)
  end
  call('ZREM', prefix .. 'tasks', id)
  if found[1] then
    call('DEL', task_key(id))
    call('ZREM', prefix .. 'tc:' .. found[1], id)
    if found[2] ~= '' then
      call('ZREM', prefix .. 'tp:' .. found[2], id)
    end
  end
  tell_hearers(id)
end

local function forget_expired(moment)
  for _, id in ipairs(call('ZRANGEBYSCORE', prefix .. 'tasks', '-inf', moment, 'LIMIT', 0, 100)) do
    forget_task(id)
  end
end

-- Forgets tasks whose hash has expired. Unlike `forget_expired`, this does not depend on the clock of a replica.
local function forget_gone()
  for _, id in ipairs(call('ZRANGE', prefix .. 'tasks', 0, 99)) do
    if call('EXISTS', task_key(id)) == 0 then
      forget_task(id)
    end
  end
end

-- Returns true if a result of `client` may grow by `more` bytes. After that, the client must not use more bytes than
-- are left for others, so one client can use half. On a server with only one client, its name is '', and it may use
-- all.
local function has_room(client, more, bytes)
  local sizes = call('HMGET', prefix .. 'sizes', 'all', '=' .. client)
  local left = bytes - (sizes[1] or 0) - more
  return left >= 0 and (client == '' or (sizes[2] or 0) + more <= left)
end

-- Stores a task. Returns 1, or 0 if there are too many tasks. Times and durations are in milliseconds.
function operations.create_task(id, record, client, principal, moment, milliseconds, total, of_one)
  forget_expired(moment)
  local share = prefix .. 'tc:' .. client
  call('ZREMRANGEBYSCORE', share, '-inf', moment)
  if call('ZCARD', prefix .. 'tasks') >= tonumber(total) or call('ZCARD', share) >= tonumber(of_one) then
    return 0
  end
  local key, ends = task_key(id), moment + milliseconds
  call('HSET', key, 'record', record, 'revision', 0, 'client', client, 'principal', principal, 'owner', me)
  call('PEXPIRE', key, milliseconds)
  call('ZADD', prefix .. 'tasks', ends, id)
  lengthen(prefix .. 'tasks', milliseconds)
  keep_sizes()
  call('ZADD', share, ends, id)
  lengthen(share, milliseconds)
  if principal ~= '' then
    local own = prefix .. 'tp:' .. principal
    local newest = call('ZREVRANGE', own, 0, 0, 'WITHSCORES')
    -- The task comes after the previous one, even if a replica with a fast clock created that.
    call('ZADD', own, math.max(moment, (newest[2] or 0) + 0.001), id)
    lengthen(own, milliseconds)
  end
  return 1
end

-- Returns the record, and 1 if the replica that runs the task is alive.
local function read_task(id)
  local found = call('HMGET', task_key(id), 'record', 'owner')
  return found[1] and { found[1], is_alive(found[2]) and 1 or 0 }
end

-- Returns the same as `read_task`; nothing if the task has expired.
function operations.get_task(id, moment)
  local ends = call('ZSCORE', prefix .. 'tasks', id)
  return ends and tonumber(ends) > tonumber(moment) and read_task(id)
end

function operations.listed(principal, moment)
  local found = {}
  for _, id in ipairs(call('ZRANGE', prefix .. 'tp:' .. principal, 0, -1)) do
    local task = operations.get_task(id, moment)
    if task then
      found[#found + 1] = task
    else
      call('ZREM', prefix .. 'tp:' .. principal, id)
    end
  end
  return found
end

-- Replaces the record. Returns 1; 0 if its revision is no longer `known`; -1 if there is no room for its result of
-- `size` bytes, which never happens for a `small` one.
function operations.replace_task(id, known, record, size, small, bytes)
  local key = task_key(id)
  local found = call('HMGET', key, 'revision', 'client')
  if found[1] ~= known then
    return 0
  end
  local before = size_of(id)
  local more = size - before
  if more ~= 0 then
    if small ~= '1' and not has_room(found[2], more, bytes) then
      forget_gone()
      if not has_room(found[2], more, bytes) then
        return -1
      end
    end
    weigh(id, found[2], before, tonumber(size))
  end
  call('HSET', key, 'record', record, 'revision', known + 1)
  tell_hearers(id)
  return 1
end

function operations.forget_task(id)
  forget_task(id)
end

-- Makes the inbox of this replica receive changes to a task. Returns the milliseconds until the task expires.
function operations.hear_task(id, moment)
  local ends = call('ZSCORE', prefix .. 'tasks', id)
  if not ends then
    return 0
  end
  call('SADD', prefix .. 'th:' .. id, me)
  lengthen(prefix .. 'th:' .. id, math.max(ends - moment, 0) + 60000)
  return math.floor(math.max(ends - moment, 0))
end

function operations.unhear_task(id)
  call('SREM', prefix .. 'th:' .. id, me)
end
