-- Data by name, stored for a limited time.

function operations.put_blob(name, data, milliseconds)
  call('SET', prefix .. 'b:' .. name, data, 'PX', milliseconds)
  return 1
end

-- Returns the data, and the milliseconds until they expire.
function operations.get_blob(name)
  local data = call('GET', prefix .. 'b:' .. name)
  return data and { data, call('PTTL', prefix .. 'b:' .. name) }
end

-- Claims the name. Returns 1, or 0 if it was taken already.
function operations.claim(name, milliseconds)
  return call('SET', prefix .. 'b:' .. name, '', 'PX', milliseconds, 'NX') and 1 or 0
end
