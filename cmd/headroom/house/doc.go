// Package house holds the tests about the shape of the repository itself. It
// has no other code and nothing imports it.
//
//	the tree ── read ──┬─ arrows     who may import whom, room by room
//	                   ├─ lengths    no source file over 400 lines
//	                   ├─ top level  nothing but what is named
//	                   ├─ honesty    no test skips, none sleeps
//	                   ├─ locks      each advisory lock has a number of its own
//	                   ├─ compose    the services as correctness needs them
//	                   └─ README     its settings and codes are the program's
//
// Each check is a function over a file system that returns the faults it found,
// so that a second test can show it a fault and see it caught.
package house
