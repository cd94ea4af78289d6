package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// setSecret keeps the text when check accepts it. The fault is check's: it must
// not repeat the text.
func setSecret(field *Secret, text string, check func(string) error) error {
	if text != strings.TrimSpace(text) {
		return errors.New("begins or ends with a blank")
	}
	if err := check(text); err != nil {
		return err
	}
	*field = NewSecret(text)
	return nil
}

func setInt(field *int, text string, low, high int) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		return fmt.Errorf("is %q, must be a whole number from %d to %d", text, low, high)
	}
	*field = n
	return nil
}

func setBool(field *bool, text string) error {
	var word string
	if err := setOneOf(&word, strings.ToLower(text), "true", "false"); err != nil {
		return err
	}
	*field = word == "true"
	return nil
}

func setOneOf(field *string, text string, allowed ...string) error {
	if !slices.Contains(allowed, text) {
		return fmt.Errorf("is %q, must be one of %s", text, strings.Join(allowed, ", "))
	}
	*field = text
	return nil
}

// setDuration takes Go's form (90s, 1h30m) and whole days (14d).
func setDuration(field *time.Duration, text string, least time.Duration) error {
	d, err := parseDuration(text)
	if err != nil {
		return err
	}
	if d < least {
		return fmt.Errorf("is %q, must be at least %s", text, least)
	}
	*field = d
	return nil
}

// maxDays keeps a duration in days well inside what a time.Duration holds.
const maxDays = 36500

func parseDuration(text string) (time.Duration, error) {
	if digits, ok := strings.CutSuffix(text, "d"); ok {
		if days, err := strconv.Atoi(digits); err == nil && days >= -maxDays && days <= maxDays {
			return time.Duration(days) * 24 * time.Hour, nil
		}
	} else if d, err := time.ParseDuration(text); err == nil {
		return d, nil
	}
	return 0, fmt.Errorf("is %q, must be a duration like 500ms, 90s, 1h30m or 14d", text)
}

func setSubject(field *string, text string) error {
	for token := range strings.SplitSeq(text, ".") {
		if token == "" || strings.ContainsFunc(token, func(r rune) bool { return !isWord(r) }) {
			return fmt.Errorf("is %q, must be tokens of letters, digits, _ and - with single dots between", text)
		}
	}
	*field = text
	return nil
}

func setKeyPrefix(field *string, text string) error {
	odd := func(r rune) bool { return !isWord(r) && r != '.' && r != ':' }
	if len(text) > 64 || strings.ContainsFunc(text, odd) {
		return fmt.Errorf("is %q, must be up to 64 of letters, digits and the characters _ - . : only", text)
	}
	*field = text
	return nil
}

func isWord(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}

func setAddr(field *string, text string) error {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("is %q, must be host:port with a port from 0 to 65535, like 127.0.0.1:8080 or [::1]:8080", text)
	}
	*field = text
	return nil
}

// checkNATS holds the files that say who we are to NATS. A key never shows in a fault.
func (c Config) checkNATS(readFile func(string) ([]byte, error)) []error {
	var faults []error
	read := func(variable, path string) []byte {
		if path == "" {
			return nil
		}
		text, err := readFile(path)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s%s: read the file: %w", variablePrefix, variable, err))
		}
		return text
	}
	read("NATS_CREDS", c.NATSCreds)
	chain, key := read("NATS_CERT", c.NATSCert), read("NATS_KEY", c.NATSKey)
	if (c.NATSCert == "") != (c.NATSKey == "") {
		return append(faults, fmt.Errorf("%sNATS_CERT and %sNATS_KEY: one without the other; a client certificate needs both", variablePrefix, variablePrefix))
	}
	if len(faults) > 0 || c.NATSCert == "" {
		return faults
	}
	if _, err := tls.X509KeyPair(chain, key); err != nil {
		faults = append(faults, fmt.Errorf("%sNATS_CERT: no certificate that %sNATS_KEY belongs to, both as PEM: %w", variablePrefix, variablePrefix, err))
	}
	return faults
}

// checkFence finds a fence that outlasts the budget: after a loss of Redis's memory every
// request would be denied before the first one could be decided.
func (c Config) checkFence() error {
	if c.RebuildFence < c.UnavailableBudget {
		return nil
	}
	return fmt.Errorf("HEADROOM_REBUILD_FENCE: is %s, and must be less than HEADROOM_UNAVAILABLE_BUDGET, which is %s",
		c.RebuildFence, c.UnavailableBudget)
}
