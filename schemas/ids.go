package schemas

// MaxIDLength is the longest identifier, in bytes.
const MaxIDLength = 128

// IDRule is ValidID in words: what an identifier must be.
const IDRule = "1 to 128 letters, digits, dashes and underscores, the first a letter or digit"

// ValidID reports whether s can name a workspace, an execution, a feature or a
// resource: a letter or digit, then at most 127 letters, digits, dashes and
// underscores (^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$). Whatever it accepts is safe
// as a token of a NATS subject and inside a Redis key.
func ValidID(s string) bool {
	if s == "" || len(s) > MaxIDLength || !alphanumeric(s[0]) {
		return false
	}
	for i := 1; i < len(s); i++ {
		if c := s[i]; !alphanumeric(c) && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// validUUID accepts a UUID of any version in its usual form of 36 characters.
func validUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F':
		default:
			return false
		}
	}
	return true
}
