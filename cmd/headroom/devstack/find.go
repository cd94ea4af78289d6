package devstack

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// MissingError says that a service's programs are not on this machine. Its text
// names the packages that bring them.
type MissingError struct {
	// Service is "PostgreSQL", "Redis" or "PgBouncer".
	Service string
	// Programs are those looked for, all needed from one directory.
	Programs []string
	// Apt and Brew are the packages of Debian and Homebrew.
	Apt, Brew string
}

// Error names the programs, and what to install.
func (e *MissingError) Error() string {
	return fmt.Sprintf("%s is not installed (no %s on PATH or where Debian and Homebrew put it): "+
		"`apt-get install %s` on Debian and Ubuntu, `brew install %s` on macOS",
		e.Service, strings.Join(e.Programs, " and "), e.Apt, e.Brew)
}

// postgresPrograms finds the directory with the programs of the newest PostgreSQL,
// after the one on PATH. Debian keeps its own off PATH.
func postgresPrograms() (string, error) {
	return findTogether([]string{"postgres", "initdb"}, []string{
		"/usr/lib/postgresql/*/bin",
		"/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql@*/bin",
		"/usr/local/opt/postgresql@*/bin",
		"/opt/homebrew/opt/postgresql/bin",
		"/usr/local/opt/postgresql/bin",
	}, MissingError{Service: "PostgreSQL", Apt: "postgresql", Brew: "postgresql@17"})
}

// redisProgram finds redis-server.
func redisProgram() (string, error) {
	dir, err := findTogether([]string{"redis-server"}, []string{
		"/usr/bin",
		"/usr/local/bin",
		"/opt/homebrew/opt/redis/bin",
		"/usr/local/opt/redis/bin",
	}, MissingError{Service: "Redis", Apt: "redis-server", Brew: "redis"})
	return filepath.Join(dir, "redis-server"), err
}

// pgBouncerProgram finds pgbouncer.
func pgBouncerProgram() (string, error) {
	dir, err := findTogether([]string{"pgbouncer"}, []string{
		"/usr/sbin",
		"/usr/local/bin",
		"/opt/homebrew/opt/pgbouncer/bin",
		"/usr/local/opt/pgbouncer/bin",
	}, MissingError{Service: "PgBouncer", Apt: "pgbouncer", Brew: "pgbouncer"})
	return filepath.Join(dir, "pgbouncer"), err
}

// findTogether returns the directory that holds all programs: that of the first
// one on PATH, else the first pattern's match with the highest version number.
func findTogether(programs, patterns []string, missing MissingError) (string, error) {
	var dirs []string
	if found, err := exec.LookPath(programs[0]); err == nil {
		dirs = append(dirs, filepath.Dir(found))
	}
	for _, pattern := range patterns {
		matches, err := filepath.Glob(pattern)
		if err != nil {
			return "", fmt.Errorf("look for %s in %s: %w", missing.Service, pattern, err)
		}
		slices.SortFunc(matches, func(a, b string) int { return version(b) - version(a) })
		dirs = append(dirs, matches...)
	}
	for _, dir := range dirs {
		if holdsAll(dir, programs) {
			return filepath.Abs(dir)
		}
	}
	missing.Programs = programs
	return "", &missing
}

func holdsAll(dir string, programs []string) bool {
	for _, program := range programs {
		info, err := os.Stat(filepath.Join(dir, program))
		if err != nil || info.IsDir() || info.Mode().Perm()&0o111 == 0 {
			return false
		}
	}
	return true
}

// version is the first number in a path, 0 when it has none.
func version(path string) int {
	digits := strings.FieldsFunc(path, func(r rune) bool { return r < '0' || r > '9' })
	if len(digits) == 0 {
		return 0
	}
	number, err := strconv.Atoi(digits[0])
	if err != nil {
		return 0
	}
	return number
}
