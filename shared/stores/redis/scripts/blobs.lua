-- Data by name, for a time.

function operations.put_blob(name, data, milliseconds)
  call('SET', prefix .. 'b:' .. name, data, 'PX', milliseconds)
  return 1
end

-- The data, and the milliseconds that they are kept on.
function operations.get_blob(name)
  local data = call('GET', prefix .. 'b:' .. name)
  return data and { data, call('PTTL', prefix .. 'b:' .. name) }
end

-- 1 where the name was not there, and is from now on.
function operations.claim(name, milliseconds)
  return call('SET', prefix .. 'b:' .. name, '', 'PX', milliseconds, 'NX') and 1 or 0
end
