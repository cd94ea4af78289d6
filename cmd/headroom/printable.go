package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// printable makes a text that somebody else wrote safe for a terminal: what would
// move the cursor, change colours or turn the direction of writing is shown as an escape.
func printable(text string) string { return escaped(text, "") }

// printableLines is printable for several lines.
func printableLines(text string) string { return escaped(text, "\n\t") }

func escaped(text, kept string) string {
	var b strings.Builder
	for i, width := 0, 0; i < len(text); i += width {
		var r rune
		r, width = utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && width == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case unicode.IsPrint(r) || strings.ContainsRune(kept, r):
			b.WriteString(text[i : i+width])
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
