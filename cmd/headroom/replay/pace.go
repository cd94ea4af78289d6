package replay

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

const (
	// longestPause is what a pause is cut to, however long the trace was silent.
	longestPause = 2 * time.Second
	// wholeReplay is about how long a replay at the speed of its own choice takes.
	wholeReplay = 15 * time.Second
)

// Speed is how many seconds of the trace pass in one second. The zero Speed
// never pauses.
type Speed struct{ factor float64 }

// ParseSpeed reads a factor above 0, "max" for no pauses, and "auto" or the
// empty text for the speed at which the trace takes about fifteen seconds.
func ParseSpeed(text string, trace Trace) (Speed, error) {
	switch text {
	case "", "auto":
		return autoSpeed(trace), nil
	case "max":
		return Speed{}, nil
	}
	factor, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(factor) || math.IsInf(factor, 0) || factor <= 0 {
		return Speed{}, fmt.Errorf("read speed %q: give the seconds of the trace that pass in one second, a number above 0 like 60; or auto for about fifteen seconds in all, or max for no pauses", text)
	}
	return Speed{factor: factor}, nil
}

// Pause is how long to wait for a gap on the trace's clock: never more than
// two seconds.
func (s Speed) Pause(gap time.Duration) time.Duration {
	if s.factor <= 0 || gap <= 0 {
		return 0
	}
	pause := gap.Seconds() / s.factor
	if pause >= longestPause.Seconds() {
		return longestPause
	}
	return time.Duration(pause * float64(time.Second))
}

// String is the factor for a person.
func (s Speed) String() string {
	if s.factor <= 0 {
		return "without pauses"
	}
	return "at " + plainNumber(s.factor) + " times its own clock"
}

// plainNumber has no exponent: three digits that count below a thousand, and
// above it whole numbers in groups of three.
func plainNumber(n float64) string {
	if n < 999.5 {
		rounded, err := strconv.ParseFloat(strconv.FormatFloat(n, 'e', 2, 64), 64)
		if err != nil {
			rounded = n
		}
		return strconv.FormatFloat(rounded, 'f', -1, 64)
	}
	digits := strconv.FormatFloat(n, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// autoSpeed halves the range in which the wanted speed lies: a faster replay
// is never a longer one.
func autoSpeed(trace Trace) Speed {
	gaps := trace.gaps()
	total := func(s Speed) (sum time.Duration) {
		for _, gap := range gaps {
			sum += s.Pause(gap)
		}
		return sum
	}
	slow, fast := 0.0, 40.0
	for range 60 {
		middle := (slow + fast) / 2
		if total(Speed{factor: math.Exp(middle)}) > wholeReplay {
			slow = middle
		} else {
			fast = middle
		}
	}
	return Speed{factor: math.Exp(fast)}
}
