// Package schematest gives a test the real services that Headroom runs on.
//
//	                    the test process                            one test
//	┌───────────────────────────────────────────────┐
//	│ a PostgreSQL cluster ── migrated template ─────┼─ copy ──► its own database
//	│ a redis-server ────────────────────────────────┼─────────► its own database number
//	└───────────────────────────────────────────────┘
//	                                                            its own nats-server, when asked
//	                                                            its own redis-server, when asked
//
// Services start when the first test asks, on free ports, and end with the process,
// however that ends. A test that asks for a service twice gets the same one, so
// PostgresURL is the address of what Postgres is connected to; a subtest is a
// test of its own. What a test was given is taken away at its cleanup.
//
// A service that cannot start fails the test and says what to install. Nothing is ever
// skipped, and nothing stands in for a service (but see RedisStandIn).
//
// What nobody tells of is asked for with Eventually.
//
// A package that uses these calls Main from its TestMain. Production code never
// imports this package.
package schematest
