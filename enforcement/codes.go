package enforcement

import "github.com/headroomhq/headroom/schemas"

// The codes of decisions (design: the contract's table). 0 is "allowed".
const (
	// CodeExecutionQuota: the period's execution quota is used up.
	CodeExecutionQuota = 9001
	// CodeConcurrency: too many executions at once.
	CodeConcurrency = 9002
	// CodeTasks: one execution has too many tasks.
	CodeTasks = 9003
	// CodeDuration: one execution ran too long.
	CodeDuration = 9004
	// CodeRate: too many starts per minute.
	CodeRate = 9005
	// CodePayload: a payload is too large.
	CodePayload = 9006
	// CodeStorage: the storage quota is used up.
	CodeStorage = 9007
	// CodeUnavailable: Headroom could not decide, and so it refused.
	CodeUnavailable = 9008
)

var codeNames = map[int]string{
	CodeExecutionQuota: "PlanExecutionLimitReached",
	CodeConcurrency:    "PlanConcurrentExecutionLimitReached",
	CodeTasks:          "PlanTaskPerExecutionLimitReached",
	CodeDuration:       "PlanExecutionTimeout",
	CodeRate:           "PlanRateLimitExceeded",
	CodePayload:        "PlanPayloadSizeExceeded",
	CodeStorage:        "PlanStorageLimitReached",
	CodeUnavailable:    "PlanEnforcementUnavailable",
}

// CodeName is the name of a code as it stands in a decision's `error`: empty
// for 0 and for a number that is no code.
func CodeName(code int) string { return codeNames[code] }

var codeLimits = map[int]string{
	CodeExecutionQuota: schemas.LimitExecutions,
	CodeConcurrency:    schemas.LimitConcurrentExecutions,
	CodeTasks:          schemas.LimitTasks,
	CodeDuration:       schemas.LimitDurationMinutes,
	CodeRate:           schemas.LimitExecutionsPerMinute,
	CodePayload:        schemas.LimitPayloadMB,
	CodeStorage:        schemas.LimitStorageMB,
}

// LimitOfCode names the limit that a code is about: empty for 9008.
func LimitOfCode(code int) string { return codeLimits[code] }
