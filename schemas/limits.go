package schemas

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// BytesPerMegabyte is what one unit of a limit in megabytes stands for.
const BytesPerMegabyte = 1 << 20

// Limit is how much of something a plan allows: a number that is never
// negative, or no bound at all. The zero Limit allows nothing, so a limit that
// nobody filled in fails closed.
type Limit struct {
	n         int64
	unlimited bool
}

// Unlimited is the limit that never refuses.
var Unlimited = Limit{unlimited: true}

// LimitOf is a limit of n. A negative n is clamped to zero: the catalog refuses
// it long before, and a limit must never turn into "no limit" by arithmetic.
func LimitOf(n int64) Limit { return Limit{n: max(n, 0)} }

// Value is the limit's number; bounded is false where there is none.
func (l Limit) Value() (n int64, bounded bool) { return l.n, !l.unlimited }

// IsUnlimited reports whether the limit has no bound.
func (l Limit) IsUnlimited() bool { return l.unlimited }

// Exceeded reports whether used is more than the limit allows.
func (l Limit) Exceeded(used int64) bool { return !l.unlimited && used > l.n }

// Pointer is the number for a JSON or SQL null: nil where there is no bound.
func (l Limit) Pointer() *int64 {
	if l.unlimited {
		return nil
	}
	n := l.n
	return &n
}

// LimitFrom is the reverse of Pointer: nil is Unlimited.
func LimitFrom(n *int64) Limit {
	if n == nil {
		return Unlimited
	}
	return LimitOf(*n)
}

// String is the number, or "unlimited".
func (l Limit) String() string {
	if l.unlimited {
		return "unlimited"
	}
	return strconv.FormatInt(l.n, 10)
}

// MarshalJSON writes {"value":n,"unlimited":false} or
// {"value":null,"unlimited":true}: never a number that stands for infinity.
func (l Limit) MarshalJSON() ([]byte, error) { return l.appendJSON(nil), nil }

func (l Limit) appendJSON(b []byte) []byte {
	if l.unlimited {
		return append(b, `{"value":null,"unlimited":true}`...)
	}
	b = append(b, `{"value":`...)
	b = strconv.AppendInt(b, l.n, 10)
	return append(b, `,"unlimited":false}`...)
}

// UnmarshalJSON reads what MarshalJSON writes. It refuses a value that is
// negative, none at all, and one that contradicts unlimited; the limit is then
// undefined.
func (l *Limit) UnmarshalJSON(body []byte) error {
	if !json.Valid(body) || body[0] != '{' {
		return fmt.Errorf("read limit: %.64q is not an object", body)
	}
	f := fields{name: "limit", reading: true, members: members(body)}
	l.fields(&f)
	if f.fault != nil {
		return fmt.Errorf("read %s %s", f.fault.Field, f.fault.Detail)
	}
	return nil
}

func (l *Limit) fields(f *fields) {
	if !f.reading {
		return // a Limit cannot be wrong
	}
	n, bounded := f.findInteger("value", optional)
	var unlimited bool
	f.boolean("unlimited", &unlimited, optional)
	switch {
	case unlimited && bounded:
		f.fail(invalid(f.key("value"), "is %d, but unlimited is true", n))
	case unlimited:
		*l = Unlimited
	case bounded:
		f.inBounds("value", n, natural())
		*l = LimitOf(n)
	default:
		f.fail(missing(f.key("value")))
	}
}

// The names of the limits, as they stand in catalogs, decisions and problems.
const (
	LimitExecutions           = "max_executions"
	LimitConcurrentExecutions = "max_concurrent_executions"
	LimitTasks                = "max_tasks_per_execution"
	LimitDurationMinutes      = "max_execution_duration_minutes"
	LimitPayloadMB            = "max_execution_payload_size_mb"
	LimitStorageMB            = "max_storage_mb"
	LimitExecutionsPerMinute  = "max_executions_per_minute"
)

// FeatureStorage is the reserved feature that counts stored bytes. Its limit is
// LimitStorageMB; no catalog may list it.
const FeatureStorage = "storage_bytes"

// LimitNames lists the seven limits in the order of the contract.
var LimitNames = []string{
	LimitExecutions, LimitConcurrentExecutions, LimitTasks, LimitDurationMinutes,
	LimitPayloadMB, LimitStorageMB, LimitExecutionsPerMinute,
}

// Limits is a plan's full set of limits. Each is stated; none has a default.
type Limits struct {
	// MaxExecutions is the number of executions that may start per period.
	MaxExecutions Limit `json:"max_executions"`
	// MaxConcurrentExecutions is the number that may run at one moment.
	MaxConcurrentExecutions Limit `json:"max_concurrent_executions"`
	// MaxTasksPerExecution is the number of tasks one execution may have.
	MaxTasksPerExecution Limit `json:"max_tasks_per_execution"`
	// MaxExecutionDurationMinutes is how long one execution may run.
	MaxExecutionDurationMinutes Limit `json:"max_execution_duration_minutes"`
	// MaxExecutionPayloadSizeMB bounds one payload, in megabytes of 1,048,576 bytes.
	MaxExecutionPayloadSizeMB Limit `json:"max_execution_payload_size_mb"`
	// MaxStorageMB bounds what a workspace stores, in megabytes.
	MaxStorageMB Limit `json:"max_storage_mb"`
	// MaxExecutionsPerMinute is the sustained start rate, and the burst.
	MaxExecutionsPerMinute Limit `json:"max_executions_per_minute"`
}

// Named is a pointer to the limit of that name, nil if there is none.
func (l *Limits) Named(name string) *Limit {
	switch name {
	case LimitExecutions:
		return &l.MaxExecutions
	case LimitConcurrentExecutions:
		return &l.MaxConcurrentExecutions
	case LimitTasks:
		return &l.MaxTasksPerExecution
	case LimitDurationMinutes:
		return &l.MaxExecutionDurationMinutes
	case LimitPayloadMB:
		return &l.MaxExecutionPayloadSizeMB
	case LimitStorageMB:
		return &l.MaxStorageMB
	case LimitExecutionsPerMinute:
		return &l.MaxExecutionsPerMinute
	default:
		return nil
	}
}

// StorageBytes is MaxStorageMB in the unit of FeatureStorage. More bytes than can be
// counted are the most that can.
func (l Limits) StorageBytes() Limit {
	n, bounded := l.MaxStorageMB.Value()
	switch {
	case !bounded:
		return Unlimited
	case n > math.MaxInt64/BytesPerMegabyte:
		return LimitOf(math.MaxInt64)
	default:
		return LimitOf(n * BytesPerMegabyte)
	}
}

// MarshalJSON writes an object of all seven limits, in the order of LimitNames.
func (l Limits) MarshalJSON() ([]byte, error) {
	const typical = 512
	b := make([]byte, 0, typical)
	for i, name := range LimitNames {
		if i == 0 {
			b = append(b, '{')
		} else {
			b = append(b, ',')
		}
		b = strconv.AppendQuote(b, name)
		b = append(b, ':')
		b = l.Named(name).appendJSON(b)
	}
	return append(b, '}'), nil
}

func (l *Limits) fields(f *fields) {
	for _, name := range LimitNames {
		f.object(name, required, l.Named(name))
	}
}
