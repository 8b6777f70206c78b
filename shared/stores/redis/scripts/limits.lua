-- Rate limits by name. For each name, the time in microseconds at which its whole burst is available again is stored
-- (the generic cell rate algorithm, ITU-T I.371).
--
-- Invariant: all replicas together never take more from a name than its rate allows.

local function now()
  local time = call('TIME')
  return time[1] * 1000000 + time[2]
end

-- Stores the time at which the whole burst is available again, until that time.
local function store_time(key, at, moment)
  call('SET', key, string.format('%.0f', at), 'PX', math.ceil((at - moment) / 1000) + 1)
end

-- Takes as many units as are available, at least `least` and up to `most`. Returns the number taken, and the
-- microseconds to wait if it is 0. `interval` is the number of microseconds in which one unit becomes available.
function operations.take(name, interval, burst, least, most)
  local key, moment = prefix .. 'l:' .. name, now()
  interval, burst, least, most = tonumber(interval), tonumber(burst), tonumber(least), tonumber(most)
  local full_at = math.max(tonumber(call('GET', key) or 0), moment)
  local left = (moment + math.max(burst, least) * interval - full_at) / interval
  if left + 1e-6 < least then
    return { '0', string.format('%.0f', math.ceil((least - left) * interval)) }
  end
  local taken = math.max(least, math.min(most, left))
  if taken > 0 then
    store_time(key, full_at + taken * interval, moment)
  end
  return { tostring(taken), '0' }
end

-- Takes `cost` units, even if fewer are available.
function operations.spend(name, interval, cost)
  local key, moment = prefix .. 'l:' .. name, now()
  store_time(key, math.max(tonumber(call('GET', key) or 0), moment) + cost * interval, moment)
end
