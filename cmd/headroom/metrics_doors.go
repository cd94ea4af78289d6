package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/headroomhq/headroom/enforcement/api"
)

// watchDoors adds what the doors count whose callers wait.
func (m *metrics) watchDoors(s *api.ExecutionsStats) {
	admissions := "Admissions that a caller waited for and was told."
	completions := "Completions told at a door: applied at once, or recorded for the consumers because Redis was away."
	m.registry.MustRegister(
		counter("headroom_door_admissions_total", admissions, "result", "allowed", s.Allowed),
		counter("headroom_door_admissions_total", admissions, "result", "denied", s.Denied),
		counter("headroom_door_unavailable_total", "Callers who were left without an answer.", "", "", s.Unavailable),
		counter("headroom_door_busy_total", "Those of them who were turned away because too many waited.", "", "", s.Busy),
		counter("headroom_door_batches_total", "Batches in which callers' questions went to Redis.", "", "", s.Batches),
		counter("headroom_door_batched_total", "Questions in those batches.", "", "", s.Batched),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "headroom_door_wait_seconds_total", Help: "How long callers waited, added up.",
		}, func() float64 { return s.Waited().Seconds() }),
		counter("headroom_door_withdrawn_total", "Allows taken back because the stream held a denial.", "", "", s.Withdrawn),
		counter("headroom_door_progress_total", "Progress of running executions that was answered.", "", "", s.Extended),
		counter("headroom_door_stopped_total", "Running executions that were told to stop.", "", "", s.Stopped),
		counter("headroom_door_completions_total", completions, "result", "applied", s.Completed),
		counter("headroom_door_completions_total", completions, "result", "recorded", s.Recorded),
	)
}
