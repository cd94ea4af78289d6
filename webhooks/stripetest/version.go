package stripetest

import (
	"fmt"
	"regexp"
)

// Version is a Stripe API version: a date, since 2024 followed by the name of its
// release. Any version can be rendered; shapes change at the dates below.
type Version string

// The versions whose shapes differ, or that are met most.
const (
	V20200827 Version = "2020-08-27"
	V20221115 Version = "2022-11-15"
	V20231016 Version = "2023-10-16"
	V20240620 Version = "2024-06-20"
	Acacia    Version = "2024-09-30.acacia"
	Basil     Version = "2025-03-31.basil"
	Clover    Version = "2025-09-30.clover"
	Endive    Version = "2026-09-30.endive"
)

// Versions lists the versions above, oldest first.
func Versions() []Version {
	return []Version{V20200827, V20221115, V20231016, V20240620, Acacia, Basil, Clover, Endive}
}

var versionForm = regexp.MustCompile(`^\d{4}-\d\d-\d\d(\.[a-z]+)?$`)

// Check is an error for a text that is no version.
func (v Version) Check() error {
	if !versionForm.MatchString(string(v)) {
		return fmt.Errorf("api version %q: must be a date such as 2024-06-20, or one with a release such as 2025-03-31.basil", v)
	}
	return nil
}

func (v Version) since(other Version) bool { return v.date() >= other.date() }

func (v Version) date() Version { return v[:min(len(v), len("2006-01-02"))] }
