package guard

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	// longestPart bounds each part of a request, in bytes.
	longestPart = 255
	separator   = ":"
	keyPrefix   = "oe"
)

// guid is a GUID in either of the forms that systems write.
var guid = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$|^[0-9A-Fa-f]{32}$`)

// Key is what a lock excludes by: an organization and a privilege, never a subject or a
// resource. Two requests with equal String are one after the other.
type Key struct {
	organization, privilege string
}

// NewKey makes the key of two parts: each valid UTF-8 without NUL or ':', of 1 to 255 bytes.
// Anything else is an *InvalidArgument: an empty part, or the NULL that SQL would
// make of it, locks nothing at all.
func NewKey(organization, privilege string) (Key, error) {
	if err := checkPart("organization", organization); err != nil {
		return Key{}, err
	}
	if err := checkPart("privilege", privilege); err != nil {
		return Key{}, err
	}
	return Key{organization: organization, privilege: privilege}, nil
}

// Organization is the organization as it was given.
func (k Key) Organization() string { return k.organization }

// Privilege is the privilege as it was given.
func (k Key) Privilege() string { return k.privilege }

// String is "oe:", the organization, ":" and the privilege. An organization that is a GUID
// is in lower case here, so that both ways to write it are one lock; whoever reads
// plans and rows gets it as given.
func (k Key) String() string {
	organization := k.organization
	if guid.MatchString(organization) {
		organization = strings.ToLower(organization)
	}
	return strings.Join([]string{keyPrefix, organization, k.privilege}, separator)
}

func checkPart(field, text string) error {
	if text == "" {
		return &InvalidArgument{Field: field, Detail: "is empty"}
	}
	if strings.Contains(text, separator) {
		return &InvalidArgument{Field: field, Detail: fmt.Sprintf("has a %q, which separates the parts of a lock's key", separator)}
	}
	return checkText(field, text)
}

func checkText(field, text string) error {
	switch {
	case len(text) > longestPart:
		return &InvalidArgument{Field: field, Detail: fmt.Sprintf("has %d bytes, more than %d", len(text), longestPart)}
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return &InvalidArgument{Field: field, Detail: "is not UTF-8 text without NUL"}
	}
	return nil
}
