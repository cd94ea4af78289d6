package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/headroomhq/headroom/schemas"
)

func TestDroppedLettersAreGoneAndTheirMessagesAreNot(t *testing.T) {
	t.Parallel()
	m := newMailroom(t)
	if _, err := m.js.Publish(t.Context(), "headroom.executions.requested.acme", []byte("nonsense")); err != nil {
		t.Fatal(err)
	}
	m.putMany(5, func(int) string { return "requested" })
	text, _, err := m.run("deadletters", "drop", "4", "2", "99", "2")
	if exitCode(err) != exitFailed || !strings.Contains(err.Error(), "drop 99: there is no dead letter 99") || strings.Contains(err.Error(), "drop 2") {
		t.Errorf("error is %v, want one about 99", err)
	}
	if want := "2  dropped  headroom.executions.requested.acme  syntax: number 2\n4  dropped  headroom.executions.requested.acme  syntax: number 4\n"; text != want {
		t.Errorf("drop prints %q, want %q", text, want)
	}
	if got := sequences(m.letters()); !slices.Equal(got, []uint64{5, 3, 1}) {
		t.Errorf("left are %v, want 5, 3 and 1", got)
	}
	if n := m.count(schemas.StreamExecutions); n != 1 {
		t.Errorf("%d messages are left in the stream, want 1", n)
	}
}

func TestManyLettersAreDroppedByWhatTheyAre(t *testing.T) {
	t.Parallel()
	m := newMailroom(t)
	m.putMany(50, func(i int) string { return [...]string{"requested", "completed"}[i%2] })
	if _, _, err := m.run("deadletters", "drop", "--all"); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "--yes") {
		t.Errorf("without a terminal: %v, want status 2 and --yes in it", err)
	}
	for _, step := range []struct {
		flags []string
		left  int
	}{
		{[]string{"--older-than", "1h"}, 50},
		{[]string{"--all", "--kind", "renewed"}, 50},
		{[]string{"--all", "--kind", "completed", "--older-than", "0s"}, 25},
		{[]string{"--older-than", "0s", "--room", "executions"}, 0},
		{[]string{"--all"}, 0},
	} {
		m.must(append([]string{"deadletters", "drop", "--yes"}, step.flags...)...)
		left := m.letters()
		if len(left) != step.left {
			t.Errorf("after %v %d letters are left, want %d", step.flags, len(left), step.left)
		}
		for _, l := range left {
			if step.left == 25 && l.Kind != "requested" {
				t.Errorf("after %v a %s is left", step.flags, l.Kind)
			}
		}
	}
}

func TestAWrongSelectionOfLettersIsStatusTwo(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"nothing":              {[]string{"drop"}, "say which"},
		"numbers and all":      {[]string{"replay", "3", "--all", "--yes"}, "either numbers"},
		"numbers and a filter": {[]string{"drop", "3", "--kind", "made"}, "either numbers"},
		"a filter alone":       {[]string{"replay", "--kind", "made", "--yes"}, "say which"},
		"no number":            {[]string{"replay", "three"}, "three"},
		"no age":               {[]string{"drop", "--older-than", "soon", "--yes"}, `--older-than is "soon"`},
		"an age to come":       {[]string{"drop", "--older-than", "-1h", "--yes"}, `--older-than`},
		"a room of no form":    {[]string{"list", "--room", "a.>"}, `--room "a.>": must be`},
		"a kind of no form":    {[]string{"replay", "--all", "--yes", "--kind", "*"}, `--kind "*": must be`},
		"no limit":             {[]string{"list", "--limit", "0"}, "at least 1"},
		"nobody to ask":        {[]string{"replay", "--all"}, "--yes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := (&installation{t: t}).run(append([]string{"deadletters"}, test.args...)...)
			if exitCode(err) != exitUsage || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error is %v (status %d), want status 2 and %q in it", err, exitCode(err), test.says)
			}
		})
	}
}

func TestWithoutStreamsTheLettersAskForMigrate(t *testing.T) {
	t.Parallel()
	if _, _, err := newInstallation(t).run("deadletters", "list"); exitCode(err) != exitFailed || !strings.Contains(err.Error(), "headroom migrate") {
		t.Errorf("error is %v, want one that names headroom migrate", err)
	}
}

func sequences(letters []deadLetter) []uint64 {
	var all []uint64
	for _, l := range letters {
		all = append(all, l.Sequence)
	}
	return all
}
