package main

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
)

// redacted is what stands where a secret would.
const redacted = "***"

// Secret is a URL, or several separated by commas, that may carry a password.
// However it is printed, logged or marshalled, who connects and with what
// stands as ***, and only scheme, hosts and path remain. Reveal is the one way
// to the text itself.
type Secret struct{ text string }

// NewSecret keeps the text out of sight.
func NewSecret(text string) Secret { return Secret{text: text} }

// Reveal is the text as it was given, for the client that connects with it.
func (s Secret) Reveal() string { return s.text }

// String is the text with everything but scheme, hosts and path replaced.
func (s Secret) String() string {
	parts := strings.Split(s.text, ",")
	if slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(part, "://") }) {
		return redactURL(s.text)
	}
	for i, part := range parts {
		parts[i] = redactURL(strings.TrimSpace(part))
	}
	return strings.Join(parts, ",")
}

// Format prints String whatever the verb: %#v and %x reach no field.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// LogValue is String for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is String for JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// redactURL keeps nothing of a text that is no plain URL: a password with a
// stray slash in it makes one, and an excerpt of it would give it away.
func redactURL(text string) string {
	if text == "" {
		return ""
	}
	parts, err := splitAuthority(text)
	if err != nil || strings.Contains(parts.Rest, "@") {
		return redacted
	}
	out := parts.Scheme + "://"
	if parts.User != "" {
		out += redacted + "@"
	}
	path, query, _ := strings.Cut(parts.Rest, "?")
	out += strings.Join(parts.Hosts, ",") + path
	if query != "" {
		out += "?" + redacted
	}
	return out
}
