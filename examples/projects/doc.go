// Package projects is a small web application with plans, for reading and for copying from.
// Its customers have projects, seats and files, and their plan says how many.
//
//	browser, curl
//	   │ POST /w/{workspace}/…
//	   ▼
//	projects.go  one transaction:  usage.Consume(projects, 1, resource) ─► INSERT ─► COMMIT
//	files.go     one transaction:  usage.Consume(storage_bytes, size)   ─► INSERT ─► COMMIT
//	seats.go     guard.Guard:      lock ─► count members, invitations   ─► INSERT ─► COMMIT
//	   │ refused: a typed error
//	   ▼
//	problem.go   429, 422, 423 as problem details, in this application's words
//	   ├─► application/problem+json for a program
//	   └─► the page with a prompt to upgrade for a browser
//
// After a downgrade nothing is deleted: the newest projects beyond the limit are locked,
// and can't be renamed until the customer deletes others, chooses them instead of
// others, or upgrades.
//
// Who is signed in is not the subject here: the workspace is in the path, and anybody may
// use any. The folder run holds a program that starts everything and serves it.
package projects
