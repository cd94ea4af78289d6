package main

import (
	"strconv"
	"time"
)

func judgePostgresVersion(f postgresFacts) judgement {
	version := f.Settings["server_version"]
	number, err := strconv.Atoi(f.Settings["server_version_num"])
	j := passes("PostgreSQL %s", version)
	if err != nil || number < postgresFloor {
		j = fails("the server is PostgreSQL %s, Headroom needs %d or later", version, postgresFloor/10000)
	}
	return j.with("version", version)
}

func judgeStandby(f postgresFacts) judgement {
	j := passes("the server is a primary")
	readOnly := f.Settings["transaction_read_only"] == "on"
	switch {
	case f.Standby:
		j = fails("the server is a standby, which takes no writes")
	case readOnly:
		j = fails("transactions are read only")
	}
	return j.with("standby", f.Standby).with("read_only", readOnly)
}

func judgeIsolation(f postgresFacts) judgement {
	level := f.Settings["default_transaction_isolation"]
	j := passes("default_transaction_isolation is %s", level)
	if level != "read committed" {
		j = fails("default_transaction_isolation is %s", level)
	}
	return j.with("default_transaction_isolation", level)
}

func judgeTimeZone(f postgresFacts) judgement {
	zone := f.Settings["TimeZone"]
	j := passes("Headroom's sessions are in UTC")
	if zone != "UTC" {
		j = warns("Headroom's sessions are in the time zone %s", zone)
	}
	return j.with("timezone", zone)
}

func judgeDurability(f postgresFacts) judgement {
	commit, fsync, pages := f.Settings["synchronous_commit"], f.Settings["fsync"], f.Settings["full_page_writes"]
	j := passes("a commit waits for the disk")
	switch {
	case commit == "off":
		j = fails("synchronous_commit is off: a commit does not wait until it is written")
	case fsync == "off" || pages == "off":
		j = warns("fsync is %s and full_page_writes is %s", fsync, pages)
	}
	return j.with("synchronous_commit", commit).with("fsync", fsync).with("full_page_writes", pages)
}

// postgresTimeouts is what Headroom's own longest work takes: a fold of the ledger, the
// silence within a transaction that it allows itself, a wait for a workspace's lock.
func postgresTimeouts() map[string]time.Duration {
	return map[string]time.Duration{
		"statement_timeout":                   30 * time.Second,
		"transaction_timeout":                 time.Minute,
		"idle_in_transaction_session_timeout": 20 * time.Second,
		"lock_timeout":                        10 * time.Second,
	}
}

func judgeTimeouts(f postgresFacts) judgement {
	all := []judgement{passes("no timeout cuts Headroom's work short")}
	details := make(map[string]any)
	longest := postgresTimeouts()
	for _, name := range sortedKeys(longest) {
		millis, err := strconv.ParseInt(f.Settings[name], 10, 64)
		if err != nil {
			continue // an older server does not have it
		}
		details[name+"_ms"] = millis
		switch set := time.Duration(millis) * time.Millisecond; {
		case set > 0 && set < time.Second:
			all = append(all, fails("%s is %s", name, set))
		case set > 0 && set < longest[name]:
			all = append(all, warns("%s is %s; Headroom needs up to %s", name, set, longest[name]))
		}
	}
	j := worst(all...)
	j.details = details
	return j
}

func judgeConnections(f postgresFacts, needed int) judgement {
	count := func(name string) int {
		n, _ := strconv.Atoi(f.Settings[name])
		return n
	}
	allowed := count("max_connections") - count("superuser_reserved_connections") - count("reserved_connections")
	for _, limit := range []int{f.RoleLimit, f.DatabaseLimit} {
		if limit >= 0 {
			allowed = min(allowed, limit)
		}
	}
	j := passes("%d connections are allowed, %d are in use, an instance opens up to %d", allowed, f.InUse, needed)
	switch {
	case allowed < needed:
		j = fails("%d connections are allowed, and an instance opens up to %d", allowed, needed)
	case allowed < 2*needed:
		j = warns("%d connections are allowed, and two instances open up to %d", allowed, 2*needed)
	case f.InUse*5 >= allowed*4:
		j = warns("%d of %d connections are in use", f.InUse, allowed)
	}
	return j.with("allowed", allowed).with("in_use", f.InUse).with("needed", needed)
}
