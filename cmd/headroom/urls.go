package main

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// The checks below repeat nothing of the text and wrap no parser's error: both
// would print a password.

func checkNATSURL(text string) error {
	for server := range strings.SplitSeq(text, ",") {
		u, err := url.Parse(strings.TrimSpace(server))
		if err != nil || u.Hostname() == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
			return errors.New("must be servers separated by commas, each nats://, tls://, ws:// or wss:// with a host " +
				"(write special characters of a password as %XX)")
		}
	}
	return nil
}

func checkPostgresURL(text string) error {
	if !strings.HasPrefix(text, "postgres://") && !strings.HasPrefix(text, "postgresql://") {
		return errors.New("must begin with postgres:// or postgresql://")
	}
	if _, err := pgxpool.ParseConfig(text); err != nil {
		return errors.New("must be postgres://user:password@host:port/database?option=value with options that PostgreSQL knows " +
			"(write special characters of a password as %XX)")
	}
	return nil
}

func checkRedisURL(text string) error {
	_, err := parseRedisURL(text)
	return err
}

// authority is the parts of a URL with one or many hosts, which net/url refuses.
type authority struct {
	Scheme, User string
	Hosts        []string
	// Rest is path, query and fragment, as written.
	Rest string
}

// splitAuthority takes a URL apart without looking into its parts.
func splitAuthority(text string) (authority, error) {
	scheme, after, found := strings.Cut(text, "://")
	if !found || scheme == "" {
		return authority{}, errors.New("has no scheme")
	}
	parts := authority{Scheme: scheme}
	hosts := after
	if i := strings.IndexAny(after, "/?#"); i >= 0 {
		hosts, parts.Rest = after[:i], after[i:]
	}
	if i := strings.LastIndexByte(hosts, '@'); i >= 0 {
		parts.User, hosts = hosts[:i], hosts[i+1:]
	}
	parts.Hosts = strings.Split(hosts, ",")
	return parts, nil
}

// counted is "1 fault" or "2 faults".
func counted(n int, noun string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
