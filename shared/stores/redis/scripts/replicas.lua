-- Which replicas there are, and what one tells others.

-- Nothing but a look into the inbox.
function operations.look()
end

-- Keeps the lease for so many milliseconds more. The number that was leased last, and those of all who have one.
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

-- Tells one replica; 0 where it is gone.
function operations.deliver(number, kind, ...)
  return tell(number, kind, ...)
end

-- Tells all others.
function operations.publish(kind, ...)
  for _, number in ipairs(call('SMEMBERS', prefix .. 'replicas')) do
    if number ~= me then
      tell(number, kind, ...)
    end
  end
end
