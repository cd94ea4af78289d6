// Package race plays the same race in four ways: five projects are allowed, four
// exist, and many requests want one more at the same moment.
//
//	                       ┌─► check, then insert          nothing between the two: lost
//	N requests at once ────┼─► guard, in-process lock      one at a time in this process
//	each: may I? insert    ├─► guard, Postgres lock        one at a time in the database
//	                       └─► usage.Consume and insert    one UPDATE checks and counts
//
// The ways are in ways.go, and are what to copy. The folder run holds a program around
// them, which prints them side by side.
package race
