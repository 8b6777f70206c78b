-- What has been done of late, by name: the moment from which on it would be as if nothing ever was, in microseconds
-- (the generic cell rate algorithm, ITU-T I.371).
--
-- Invariant: over all replicas no more is taken of a name than its rate allows.

local function now()
  local time = call('TIME')
  return time[1] * 1000000 + time[2]
end

local function note(key, at, moment)
  call('SET', key, string.format('%.0f', at), 'PX', math.ceil((at - moment) / 1000) + 1)
end

-- Takes as many as there are of `most`, but at least `least`; how many, and how many microseconds to wait where none.
-- `interval` is that of one, in microseconds.
function operations.take(name, interval, burst, least, most)
  local key, moment = prefix .. 'l:' .. name, now()
  interval, burst, least, most = tonumber(interval), tonumber(burst), tonumber(least), tonumber(most)
  local rests = math.max(tonumber(call('GET', key) or 0), moment)
  local left = (moment + math.max(burst, least) * interval - rests) / interval
  if left + 1e-6 < least then
    return { '0', string.format('%.0f', math.ceil((least - left) * interval)) }
  end
  local taken = math.max(least, math.min(most, left))
  if taken > 0 then
    note(key, rests + taken * interval, moment)
  end
  return { tostring(taken), '0' }
end

-- Takes them, whatever is left.
function operations.spend(name, interval, cost)
  local key, moment = prefix .. 'l:' .. name, now()
  note(key, math.max(tonumber(call('GET', key) or 0), moment) + cost * interval, moment)
end
