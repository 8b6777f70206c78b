-- The replicas, and their messages to each other.

-- Does nothing: the caller only wants its inbox.
function operations.look()
end

-- Extends the lease. Returns the number leased most recently, and the numbers of all living replicas.
function operations.renew(milliseconds)
  call('PEXPIRE', prefix .. 'replica:' .. me, milliseconds)
  local numbers = { call('GET', prefix .. 'numbers') or '0' }
  for _, number in ipairs(call('SMEMBERS', prefix .. 'replicas')) do
    if is_alive(number) then
      numbers[#numbers + 1] = number
    else
      call('SREM', prefix .. 'replicas', number)
    end
  end
  return numbers
end

-- Sends a message to one replica. Returns 0 if it is not alive.
function operations.deliver(number, kind, ...)
  return tell(number, kind, ...)
end

-- Sends a message to all other replicas.
function operations.publish(kind, ...)
  for _, number in ipairs(call('SMEMBERS', prefix .. 'replicas')) do
    if number ~= me then
      tell(number, kind, ...)
    end
  end
end
