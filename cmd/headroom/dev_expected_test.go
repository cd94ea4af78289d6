package main

import (
	"encoding/csv"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// What follows works out from a trace and the numbers of its plans what has to
// be decided. It shares no code with what decides.

// asked is one row of a trace.
type asked struct {
	workspace, id string
	at, end       time.Time
	tasks         int64
	input, output int64
	running       bool
}

// numbers is a plan; unbounded is a limit that is not there.
type numbers struct {
	key                                      string
	quota, atOnce, tasks, minutes, megabytes int64
}

const unbounded = int64(1) << 40

// verdict is what is decided about one execution.
type verdict struct {
	Code      int
	Exhausted string
	// Used is how much of the deciding limit was used at a denial, and of the
	// quota after an allow; Concurrent the executions under way then.
	Used, Concurrent int64
	// Stopped is the code at its end, 0 when it may end in peace.
	Stopped int
}

// judge works through one workspace's executions in the order of time.
func judge(rows []asked, plan numbers) map[string]verdict {
	verdicts := make(map[string]verdict)
	var used int64
	for i, row := range rows {
		var concurrent int64
		for _, earlier := range rows[:i] {
			if earlier.running && earlier.end.After(row.at) {
				concurrent++
			}
		}
		v := verdict{Concurrent: concurrent}
		reasons := []struct {
			met   bool
			code  int
			limit string
			used  int64
		}{
			{row.input > plan.megabytes*1024*1024, 9006, "max_execution_payload_size_mb", (row.input + 1024*1024 - 1) / (1024 * 1024)},
			{used >= plan.quota, 9001, "max_executions", used},
			{concurrent >= plan.atOnce, 9002, "max_concurrent_executions", concurrent},
		}
		var exhausted []string
		for _, reason := range reasons {
			if reason.met {
				exhausted = append(exhausted, reason.limit)
				if v.Code == 0 {
					v.Code, v.Used = reason.code, reason.used
				}
			}
		}
		v.Exhausted = strings.Join(exhausted, " ")
		if v.Code == 0 {
			used++
			rows[i].running = true
			v.Used, v.Concurrent, v.Stopped = used, concurrent+1, stopped(row, plan)
		}
		verdicts[row.id] = v
	}
	return verdicts
}

func stopped(row asked, plan numbers) int {
	switch {
	case row.output > plan.megabytes*1024*1024:
		return 9006
	case row.tasks > plan.tasks:
		return 9003
	case row.end.Sub(row.at) > time.Duration(plan.minutes)*time.Minute && plan.minutes != unbounded:
		return 9004
	default:
		return 0
	}
}

// rowsOf reads a trace whose columns stand in the documented order, grouped by
// workspace in order of first appearance, each in the order of time.
func rowsOf(t *testing.T, body []byte) (workspaces []string, rows map[string][]asked) {
	t.Helper()
	records, err := csv.NewReader(strings.NewReader(string(body))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	all := make([]asked, 0, len(records))
	for _, record := range records[1:] {
		seconds, err := strconv.ParseFloat(record[5], 64)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, record[3])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, asked{
			workspace: record[1], id: record[2], at: at, end: at.Add(time.Duration(math.Round(seconds*1e3)) * time.Millisecond),
			tasks: whole(t, record[4]), input: whole(t, record[6]), output: whole(t, record[7]),
		})
	}
	slices.SortStableFunc(all, func(a, b asked) int { return a.at.Compare(b.at) })
	rows = make(map[string][]asked)
	for _, row := range all {
		if rows[row.workspace] == nil {
			workspaces = append(workspaces, row.workspace)
		}
		rows[row.workspace] = append(rows[row.workspace], row)
	}
	return workspaces, rows
}

func whole(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
