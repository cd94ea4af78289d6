package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/enforcement/ledger"
	"github.com/headroomhq/headroom/schemas"
)

// decisionsCmd shows what was decided for a workspace.
type decisionsCmd struct {
	Workspace string `arg:"" name:"WS" help:"The workspace."`
	Execution string `help:"Only what is about this execution." placeholder:"ID"`
	Limit     int    `help:"How many at most, 1 to 1000; ${default} unless given." default:"100" placeholder:"N"`
	output
}

// Help tells where the answer comes from.
func (decisionsCmd) Help() string {
	return "Reads the ledger in PostgreSQL: a row for each allowed execution; denials of one minute with the same code are one line, " +
		"with their count and the last of them. With --execution it also searches the decisions stream in NATS, which still has each denial by itself.\n\n" +
		"-o json prints the decisions as they were published (decision.made). Of an allowed execution the ledger does not keep exact, " +
		"plan_as_of and replayed: they are left out, unless --execution finds the decision in the stream."
}

// Run prints the decisions, newest first.
func (c *decisionsCmd) Run(ctx context.Context, p *program) error {
	if err := c.check(); err != nil {
		return err
	}
	return p.withAdmin(ctx, func(a *admin) error {
		records, err := ledger.New(a.postgres).Decisions(ctx, ledger.Query{Workspace: c.Workspace, Execution: c.Execution, Limit: c.Limit})
		if err != nil {
			return err
		}
		if c.Execution != "" {
			found, err := a.streamedDecisions(ctx, c.Workspace, c.Execution)
			if err != nil {
				p.note("Denials that the ledger has rolled up are not shown: %v", err)
			}
			records = mergeRecords(records, found)
		}
		told := stopsOf(records)
		records = records[:min(len(records), c.Limit)]
		if c.json() {
			return writeIndented(p.stdout, api.ViewDecisions(records))
		}
		return printDecisions(p, records, told)
	})
}

func (c *decisionsCmd) check() error {
	if err := checkID("workspace", c.Workspace); err != nil {
		return err
	}
	if c.Execution != "" {
		if err := checkID("execution", c.Execution); err != nil {
			return err
		}
	}
	if c.Limit < 1 || c.Limit > ledger.MaxLimit {
		return &usageError{Err: fmt.Errorf("--limit %d: must be 1 to %d", c.Limit, ledger.MaxLimit)}
	}
	return nil
}

// mergeRecords adds the decisions that no record shows and makes the stream's
// full text stand for the ledger's shorter one. The result is newest first.
func mergeRecords(records []ledger.Record, streamed []schemas.DecisionMade) []ledger.Record {
	place := make(map[string]int, len(records))
	for i, r := range records {
		place[r.Decision.DecisionID] = i
	}
	merged := slices.Clone(records)
	for _, d := range streamed {
		if i, known := place[d.DecisionID]; known {
			merged[i].Decision = d
			continue
		}
		place[d.DecisionID] = len(merged)
		merged = append(merged, ledger.Record{At: d.DecidedAt, Count: 1, Decision: d})
	}
	slices.SortStableFunc(merged, func(a, b ledger.Record) int { return b.At.Compare(a.At) })
	return merged
}
