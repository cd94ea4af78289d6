package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// doctorCmd checks what an installation's correctness rests on.
type doctorCmd struct{ output }

// Help says what is looked at and what the exit code means.
func (doctorCmd) Help() string {
	return "Asks NATS, Redis, PostgreSQL and Stripe (where it is followed) for their versions and for every setting and figure that Headroom's promises rest on, " +
		"and says of each that is not as it should be how to mend it. It changes nothing. A service that is away is a finding, and the others are checked all the same.\n\n" +
		"Exit code 0: nothing fails (warnings may be there). 1: something fails. docs/doctor.md lists every check."
}

// errFindings is the end of an examination that found something to fail on.
type errFindings struct{ failing int }

// Error counts them; the findings themselves are on stdout.
func (e *errFindings) Error() string {
	if e.failing == 1 {
		return "1 check fails"
	}
	return fmt.Sprintf("%d checks fail", e.failing)
}

// Run examines and prints. On a terminal each finding is printed when it is known,
// elsewhere all of them at the end, in the order of docs/doctor.md.
func (c *doctorCmd) Run(ctx context.Context, p *program) error {
	report := &examined{out: p.stdout, live: !c.json() && isTerminal(p.stdout)}
	newDoctor(p.getenv, now, report).examine(ctx)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("examine: %w", err)
	}
	findings := report.sorted()
	if c.json() {
		if err := writeIndented(p.stdout, findings); err != nil {
			return err
		}
	} else {
		report.finish(findings)
	}
	if n := countOf(findings, statusFail); n > 0 {
		return &errFindings{failing: n}
	}
	return nil
}

// examined takes findings from checks that run side by side.
type examined struct {
	out  io.Writer
	live bool

	mu       sync.Mutex
	findings []finding
}

func (r *examined) add(f finding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.findings = append(r.findings, f)
	if r.live {
		f.print(r.out)
	}
}

// sorted are the findings in the order of the table of diagnoses.
func (r *examined) sorted() []finding {
	r.mu.Lock()
	defer r.mu.Unlock()
	place := make(map[string]int)
	for i, d := range diagnoses() {
		place[d.ID] = i
	}
	sorted := slices.Clone(r.findings)
	slices.SortStableFunc(sorted, func(a, b finding) int { return place[a.ID] - place[b.ID] })
	return list(sorted)
}

// finish prints what was not printed yet, and the sum.
func (r *examined) finish(findings []finding) {
	if !r.live {
		for _, f := range findings {
			f.print(r.out)
		}
	}
	fmt.Fprintf(r.out, "\n%s: %d ok, %d to look at, %d failing\n", counted(len(findings), "check"),
		countOf(findings, statusOK), countOf(findings, statusWarn), countOf(findings, statusFail))
}

// doctor examines one installation.
type doctor struct {
	getenv func(string) string
	now    func() time.Time
	report *examined
	log    *slog.Logger

	config Config
	// faulty are the variables that have a fault; config has their defaults.
	faulty map[string]bool
	nats   *natsPatient
	redis  *redisPatient
	db     *postgresPatient
}

func newDoctor(getenv func(string) string, now func() time.Time, report *examined) *doctor {
	return &doctor{getenv: getenv, now: now, report: report, log: slog.New(slog.DiscardHandler)}
}

// examine reads the settings, reaches the services all at once, and then runs all
// checks of those that answer all at once.
func (d *doctor) examine(ctx context.Context) {
	d.readSettings(os.ReadFile, os.Environ())
	opening := []func(context.Context){d.reachNATS, d.reachRedis, d.reachPostgres}
	var wait sync.WaitGroup
	for _, open := range opening {
		wait.Go(func() { open(ctx) })
	}
	wait.Wait()
	defer d.close()
	for _, e := range slices.Concat(d.settingsChecks(), d.natsChecks(), d.redisChecks(), d.postgresChecks(), d.clockChecks(),
		d.ledgerChecks(), d.stripeChecks(), d.subscriptionChecks()) {
		wait.Go(func() { d.check(ctx, e) })
	}
	wait.Wait()
}

func (d *doctor) close() {
	if d.nats != nil {
		d.nats.conn.Close()
	}
	if d.redis != nil {
		_ = d.redis.client.Close() // nothing waits in it
	}
	if d.db != nil {
		d.db.pool.Close()
	}
}

// examination is one check: it looks at one thing and judges it.
type examination struct {
	id   string
	look func(ctx context.Context) judgement
}

// checkPatience bounds each check, whatever the service does.
const checkPatience = 5 * time.Second

// check runs one examination, and fails it when there is no answer in time, also from
// what does not heed its context.
func (d *doctor) check(ctx context.Context, e examination) {
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	answer := make(chan judgement, 1)
	go func() { answer <- e.look(ctx) }()
	select {
	case j := <-answer:
		d.found(e.id, j)
	case <-ctx.Done():
		d.found(e.id, fails("no answer within %s", checkPatience))
	}
}

// unasked is the judgement of a check that got no answer.
func unasked(err error) judgement {
	return fails("could not be checked: %s", strings.ReplaceAll(err.Error(), "\n", " ")).with("error", err.Error())
}

func (d *doctor) found(id string, j judgement) { d.report.add(j.of(id)) }
