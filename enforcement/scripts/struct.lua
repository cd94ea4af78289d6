-- Redis packs binary numbers for its scripts. The stand-in that `headroom dev`
-- falls back to does not, so for it alone here is as much as the scripts use:
-- little-endian unsigned integers I1 to I6 and strings of a given length cN.
local struct = rawget(_G, 'struct') or {
  pack = function(format, ...)
    local values, parts, at = {...}, {}, 0
    for kind, size in string.gmatch(format, '([cI])(%d+)') do
      at = at + 1
      local part = values[at]
      if kind == 'I' then
        local number, bytes = part, {}
        for i = 1, tonumber(size) do
          bytes[i] = string.char(number % 256)
          number = math.floor(number / 256)
        end
        part = table.concat(bytes)
      end
      parts[at] = part
    end
    return table.concat(parts)
  end,
  unpack = function(format, packed)
    local values, from = {}, 1
    for size in string.gmatch(format, 'I(%d+)') do
      local number = 0
      for i = tonumber(size) - 1, 0, -1 do
        number = number * 256 + string.byte(packed, from + i)
      end
      values[#values + 1], from = number, from + size
    end
    return unpack(values)
  end,
}

