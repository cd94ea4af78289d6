package replay_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headroomhq/headroom/cmd/headroom/replay"
)

func TestParseSpeed(t *testing.T) {
	t.Parallel()
	trace := traceOf(t, "kiln,bakery,one,2026-03-02T09:00:00Z,1,600,1,1")
	tests := map[string]struct {
		text  string
		pause time.Duration // for ten minutes
	}{
		"no pauses by name":           {"max", 0},
		"a factor":                    {"600", time.Second},
		"a fraction":                  {"1200.5", 499791753 * time.Nanosecond},
		"slower than the trace":       {"0.5", 2 * time.Second},
		"as it ran, cut":              {"1", 2 * time.Second},
		"its own choice":              {"auto", 2 * time.Second},
		"its own choice, left unsaid": {"", 2 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			speed, err := replay.ParseSpeed(test.text, trace)
			if err != nil {
				t.Fatal(err)
			}
			if got := speed.Pause(10 * time.Minute); got != test.pause {
				t.Errorf("ten minutes pass in %s, want %s", got, test.pause)
			}
		})
	}
	for _, text := range []string{"fast", "0", "-1", "NaN", "Inf", "1x", " "} {
		if _, err := replay.ParseSpeed(text, trace); err == nil || !strings.Contains(err.Error(), "auto") || !strings.Contains(err.Error(), "max") {
			t.Errorf("of speed %q: %v, want an error that says what it may be", text, err)
		}
	}
}

func TestASpeedIsShownAsAPlainNumber(t *testing.T) {
	t.Parallel()
	trace := traceOf(t, "kiln,bakery,one,2026-03-02T09:00:00Z,1,600,1,1")
	for text, want := range map[string]string{
		"max": "without pauses", "0.00012345": "at 0.000123 times its own clock", "60": "at 60 times its own clock",
		"478.6": "at 479 times its own clock", "999.6": "at 1,000 times its own clock", "1000": "at 1,000 times its own clock",
		"451234.5": "at 451,234 times its own clock", "1e9": "at 1,000,000,000 times its own clock",
	} {
		speed, err := replay.ParseSpeed(text, trace)
		if err != nil || speed.String() != want {
			t.Errorf("speed %s is shown as %q (%v), want %q", text, speed, err, want)
		}
	}
}

func TestTheSpeedOfItsOwnChoiceTakesAboutFifteenSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var rows []string
		at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
		for i := range 60 {
			at = at.Add(time.Duration(i*i) * time.Second)
			rows = append(rows, fmt.Sprintf("kiln,bakery,e%d,%s,1,%d,1,1", i, at.Format(time.RFC3339), i*40))
		}
		trace := traceOf(t, rows...)
		speed, err := replay.ParseSpeed("auto", trace)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if err := replay.Play(t.Context(), trace, replay.Options{Headroom: &recorder{}, Speed: speed, Decided: func(replay.Decided) {}}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took < 14*time.Second || took > 15*time.Second {
			t.Errorf("replay %s took %s, want 14 to 15 seconds", speed, took)
		}
	})
}
