package enforcement

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/headroomhq/headroom/schemas"
)

// recordEpoch is the instant from which records count their milliseconds.
const recordEpoch = 1577836800000 // 2020-01-01T00:00:00Z

// The reasons of a denial, as the scripts add them up.
const (
	reasonPayload = 1 << iota
	reasonQuota
	reasonConcurrency
	reasonRate
	reasonUnavailable
	knownReasons = reasonUnavailable<<1 - 1
)

// record is what Redis keeps of a request that was answered; scripts/prelude.lua
// says how it is packed.
type record struct {
	status     byte
	digest     string
	reasons    int
	used       int64
	concurrent int64
	peak       int64
	at         time.Time
	retry      time.Duration
	// The most that the execution's progress told, nil for nothing.
	tasks, payload *int64
}

func (r record) denied() bool { return r.status == 'D' }

const (
	allowedLength = 35
	grownLength   = 46
	deniedLength  = 33
)

// unpackRecord reads an allow, a completed allow or a denial.
func unpackRecord(packed string) (record, error) {
	b := []byte(packed)
	switch {
	case len(b) == deniedLength && b[0] == 'D' && int(b[9])&knownReasons != 0:
		return record{
			status: 'D', digest: packed[1:9], reasons: int(b[9]),
			used: little(b[10:15]), concurrent: little(b[15:19]), peak: little(b[19:23]),
			at:    time.UnixMilli(recordEpoch + little(b[23:28])).UTC(),
			retry: time.Duration(little(b[28:33])) * time.Millisecond,
		}, nil
	case (len(b) == allowedLength || len(b) == grownLength) && strings.IndexByte("ASFCN", b[0]) >= 0:
		r := record{
			status: b[0], digest: packed[9:17],
			used: little(b[17:22]), concurrent: little(b[22:26]), peak: little(b[26:30]),
			at: time.UnixMilli(recordEpoch + little(b[30:35])).UTC(),
		}
		if len(b) == grownLength {
			r.tasks, r.payload = toldOf(b[35:40]), toldOf(b[40:46])
		}
		return r, nil
	default:
		return record{}, fmt.Errorf("unpack record: %d bytes are no record", len(b))
	}
}

// toldOf reads a number that was kept plus 1, so that 0 is none.
func toldOf(b []byte) *int64 {
	n := little(b) - 1
	if n < 0 {
		return nil
	}
	return &n
}

// little is an unsigned little-endian integer of up to seven bytes.
func little(b []byte) int64 {
	var wide [8]byte
	copy(wide[:], b)
	return int64(binary.LittleEndian.Uint64(wide[:]) & (1<<63 - 1))
}

var outcomeStatus = map[schemas.Outcome]string{
	schemas.OutcomeSucceeded:  "S",
	schemas.OutcomeFailed:     "F",
	schemas.OutcomeCanceled:   "C",
	schemas.OutcomeNotStarted: "N",
}

// outcomeOf is the outcome that a status stands for, a tombstone's too; empty
// for a status that is no completion.
func outcomeOf(status byte) schemas.Outcome {
	switch status {
	case 'S', 's':
		return schemas.OutcomeSucceeded
	case 'F', 'f':
		return schemas.OutcomeFailed
	case 'C', 'c':
		return schemas.OutcomeCanceled
	case 'N', 'n':
		return schemas.OutcomeNotStarted
	default:
		return ""
	}
}
