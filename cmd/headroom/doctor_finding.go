package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// What the status of a finding may be. A warning is to be looked at and fails nothing.
const (
	statusOK   = "ok"
	statusWarn = "warn"
	statusFail = "fail"
)

// finding is what -o json prints of one check.
type finding struct {
	ID      string `json:"id"`
	Service string `json:"service"`
	Status  string `json:"status"`
	// What is one sentence about what was found.
	What string `json:"what"`
	// Remedy is empty when nothing is to be done.
	Remedy string `json:"remedy"`
	// Details are the figures behind it; never null.
	Details map[string]any `json:"details"`
}

// diagnosis is a row of docs/doctor.md: what a check fails and warns on, and what to do.
type diagnosis struct {
	ID, Service  string
	Fails, Warns string
	Remedy       string
}

// diagnoses are all checks there are, in the order in which they are shown.
func diagnoses() []diagnosis {
	return slices.Concat(settingsDiagnoses(), natsDiagnoses(), redisDiagnoses(), postgresDiagnoses(), clockDiagnoses(),
		ledgerDiagnoses(), stripeDiagnoses(), subscriptionDiagnoses())
}

// judgement is what a check makes of what it saw.
type judgement struct {
	status, what string
	details      map[string]any
	// unknown is something that this check has no way to know: not wrong, and yet
	// somebody should look.
	unknown bool
}

func judged(status, format string, args ...any) judgement {
	return judgement{status: status, what: fmt.Sprintf(format, args...), details: map[string]any{}}
}

func passes(format string, args ...any) judgement { return judged(statusOK, format, args...) }
func warns(format string, args ...any) judgement  { return judged(statusWarn, format, args...) }
func fails(format string, args ...any) judgement  { return judged(statusFail, format, args...) }

// unknowable is no fault, and comes with the remedy.
func unknowable(format string, args ...any) judgement {
	j := passes(format, args...)
	j.unknown = true
	return j
}

// with adds a figure.
func (j judgement) with(name string, value any) judgement {
	j.details = maps.Clone(j.details)
	j.details[name] = value
	return j
}

// of is the judgement as the finding of the check with that id.
func (j judgement) of(id string) finding {
	f := finding{ID: id, Status: j.status, What: j.what, Details: j.details}
	for _, d := range diagnoses() {
		if d.ID != id {
			continue
		}
		f.Service = d.Service
		if j.status != statusOK || j.unknown {
			f.Remedy = d.Remedy
		}
	}
	return f
}

// worst is the worst of several judgements about the same thing, the first of those
// that are equally bad. There is at least one.
func worst(all ...judgement) judgement {
	gravity := []string{statusOK, statusWarn, statusFail}
	return slices.MaxFunc(all, func(a, b judgement) int {
		return slices.Index(gravity, a.status) - slices.Index(gravity, b.status)
	})
}

// print writes the finding for a person: a line, and the remedy under it.
func (f finding) print(w io.Writer) {
	fmt.Fprintf(w, "%-5s %-26s %s\n", f.Status, f.ID, f.What)
	if f.Remedy != "" {
		fmt.Fprintf(w, "%-5s %-26s -> %s\n", "", "", f.Remedy)
	}
}

func countOf(findings []finding, status string) int {
	n := 0
	for _, f := range findings {
		if f.Status == status {
			n++
		}
	}
	return n
}

// byAge judges something that should not be old: of no age at all, or past one of two ages.
func byAge(age, warn, fail time.Duration) string {
	switch {
	case age > fail:
		return statusFail
	case age > warn:
		return statusWarn
	default:
		return statusOK
	}
}

// byShare judges how full something is.
func byShare(used, most float64) string {
	switch {
	case used >= 0.95*most:
		return statusFail
	case used >= 0.8*most:
		return statusWarn
	default:
		return statusOK
	}
}

// brief is a duration as a person reads it.
func brief(d time.Duration) string {
	if d.Abs() < time.Second {
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(time.Second).String()
}

// several joins names, the first three of many.
func several(names []string) string {
	if len(names) <= 3 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
}
