// Package engine is a small workflow engine beside Headroom, for reading: how it
// asks, runs and stops is all in integration.go, and the rest is any engine.
//
//	Samples ─► Engine.Run ─► one goroutine for each Workflow
//	                           └ run (integration.go): Admit, then task after task
//	                               Task ─ its result is the next one's input ─► Task
//
// The folder run holds a program around it.
package engine
