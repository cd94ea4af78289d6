package schemas

// instantShape reports whether text is written as RFC 3339 has it. The parser of
// package time is laxer (a comma before the fraction, hours of one digit, an
// offset of 24 hours), and it is left to that parser whether the date exists.
//
// The years are 1000 to 2999, and 1100 to 2899 with an offset: so that an instant
// taken to UTC is one that may be written again, and none is the zero time.
func instantShape(text []byte) bool {
	const seconds = len("2006-01-02T15:04:05")
	if len(text) <= seconds || !matches(text[:seconds], "dddd-dd-ddTdd:dd:dd") || text[0] != '1' && text[0] != '2' {
		return false
	}
	zone := text[seconds:]
	if zone[0] == '.' {
		digits := 1
		for digits < len(zone) && digit(zone[digits]) {
			digits++
		}
		if digits == 1 {
			return false
		}
		zone = zone[digits:]
	}
	if len(zone) == 1 {
		return zone[0] == 'Z'
	}
	atEdge := text[0] == '1' && text[1] == '0' || text[0] == '2' && text[1] == '9'
	return !atEdge && (matches(zone, "+dd:dd") || matches(zone, "-dd:dd")) &&
		(zone[1] < '2' || zone[1] == '2' && zone[2] < '4') && zone[4] < '6'
}

// matches compares text with a shape in which d stands for a digit.
func matches(text []byte, shape string) bool {
	if len(text) != len(shape) {
		return false
	}
	for i, c := range text {
		if shape[i] == 'd' && !digit(c) || shape[i] != 'd' && shape[i] != c {
			return false
		}
	}
	return true
}

func digit(c byte) bool { return c >= '0' && c <= '9' }
