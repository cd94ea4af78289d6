package schemas

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
)

// CheckServer returns the version of the nats-server that nc is connected to,
// and an error with ErrServerTooOld in its chain when that version lacks fixes
// for lost or repeated messages: before 2.12.15, and 2.13.0 to 2.14.4. In a
// cluster it speaks for the connected server only.
func CheckServer(nc *nats.Conn) (string, error) {
	version := nc.ConnectedServerVersion()
	if version == "" {
		return "", fmt.Errorf("check nats-server version: %w", nats.ErrConnectionClosed)
	}
	return version, CheckServerVersion(version)
}

// release is major, minor, patch.
type release [3]int

func (r release) before(s release) bool {
	for i := range r {
		if r[i] != s[i] {
			return r[i] < s[i]
		}
	}
	return false
}

// CheckServerVersion judges a version such as "2.12.15" or "2.14.5-RC.1"; a
// pre-release counts as older than its release. See CheckServer.
func CheckServerVersion(version string) error {
	v, pre, err := parseRelease(version)
	if err != nil {
		return fmt.Errorf("check nats-server version: %w", err)
	}
	var (
		oldest = release{2, 12, 15}
		next   = release{2, 13, 0}
		mended = release{2, 14, 5}
	)
	old := v.before(oldest) || pre && v == oldest
	broken := !v.before(next) && (v.before(mended) || pre && v == mended)
	if old || broken {
		return fmt.Errorf("%w: it is %s, upgrade it to 2.12.15 of the 2.12 line or to 2.14.5 or later", ErrServerTooOld, version)
	}
	return nil
}

func parseRelease(version string) (r release, pre bool, err error) {
	numbers, suffix, _ := strings.Cut(strings.TrimPrefix(version, "v"), "-")
	parts := strings.Split(numbers, ".")
	if len(parts) != len(r) {
		return r, false, fmt.Errorf("%q is not a version", version)
	}
	for i, part := range parts {
		if r[i], err = strconv.Atoi(part); err != nil {
			return r, false, fmt.Errorf("%q is not a version: %w", version, err)
		}
	}
	return r, suffix != "", nil
}
