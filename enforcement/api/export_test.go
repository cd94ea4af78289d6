package api

// Waiting is how many callers wait for an answer of any kind.
func (e *Executions) Waiting() int64 {
	return e.admissions.inside.Load() + e.progresses.inside.Load() + e.completions.inside.Load()
}
