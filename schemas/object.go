package schemas

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// The functions of this file walk JSON that json.Valid has accepted, so they
// find where things are and never have to ask whether they are well-formed.
// encoding/json's own decoder is no use here: it takes "Data" for "data", lets
// the second of two equal names win and cannot tell a missing field from a null.

// member is one name and value of an object; value is raw JSON.
type member struct{ name, value []byte }

// typicalMember is about how many bytes a member takes; it sizes the list.
const typicalMember = 32

// members lists the members of an object in their order.
func members(object []byte) []member {
	list := make([]member, 0, 2+len(object)/typicalMember)
	for i := skipSpace(object, 1); object[i] != '}'; {
		end := skipString(object, i)
		name := unquote(object[i:end])
		i = skipSpace(object, skipSpace(object, end)+1) // over the colon
		end = skipValue(object, i)
		list = append(list, member{name, object[i:end]})
		if i = skipSpace(object, end); object[i] == ',' {
			i = skipSpace(object, i+1)
		}
	}
	return list
}

// elements lists the raw elements of an array, at most limit+1 of them.
func elements(array []byte, limit int) [][]byte {
	var list [][]byte
	for i := skipSpace(array, 1); array[i] != ']' && len(list) <= limit; {
		end := skipValue(array, i)
		list = append(list, array[i:end])
		if i = skipSpace(array, end); array[i] == ',' {
			i = skipSpace(array, i+1)
		}
	}
	return list
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipString is the index after the string that begins at i.
func skipString(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// skipValue is the index after the value that begins at i.
func skipValue(b []byte, i int) int {
	for depth := 0; ; {
		switch b[i] {
		case '"':
			i = skipString(b, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\n', '\r', '\t':
			i++
		default:
			i = skipScalar(b, i)
		}
		if depth == 0 {
			return i
		}
	}
}

// skipScalar is the index after the number or word that begins at i.
func skipScalar(b []byte, i int) int {
	for ; i < len(b); i++ {
		switch b[i] {
		case ',', '}', ']', ' ', '\n', '\r', '\t':
			return i
		}
	}
	return i
}

// unquote is the text of a JSON string. Without escapes it shares quoted's memory.
func unquote(quoted []byte) []byte {
	plain := quoted[1 : len(quoted)-1]
	for _, c := range plain {
		if c == '\\' {
			var s string
			if json.Unmarshal(quoted, &s) == nil {
				return []byte(s)
			}
			break
		}
	}
	return plain
}

// integer reads a JSON number that is a whole number of 64 bits, however it is
// written: 3, 3.0 and 30e-1 are the same to JSON Schema, and so to us.
func integer(number []byte) (int64, bool) {
	if n, err := strconv.ParseInt(string(number), 10, 64); err == nil {
		return n, true
	}
	text, negative := strings.CutPrefix(string(number), "-")
	mantissa, exponent, hasExponent := strings.Cut(strings.ToLower(text), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return 0, true
	}
	shift := -len(fraction)
	if hasExponent {
		e, err := strconv.Atoi(exponent)
		if err != nil || e > math.MaxInt32 || e < math.MinInt32 {
			return 0, false
		}
		shift += e
	}
	return scale(digits, shift, negative)
}

// scale is digits × 10^shift, if that is a whole number of 64 bits.
func scale(digits string, shift int, negative bool) (int64, bool) {
	const longest = 19 // digits of the largest int64
	trimmed := strings.TrimRight(digits, "0")
	shift += len(digits) - len(trimmed)
	if shift < 0 || shift+len(trimmed) > longest {
		return 0, false
	}
	text := trimmed + strings.Repeat("0", shift)
	if negative {
		text = "-" + text
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}
