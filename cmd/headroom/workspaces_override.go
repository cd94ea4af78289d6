package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/subscriptions"
)

// wordUnlimited is how a person writes that there is no bound.
const wordUnlimited = "unlimited"

// workspacesOverrideCmd gives a workspace limits of its own.
type workspacesOverrideCmd struct {
	Workspace string   `arg:"" name:"WS" help:"The workspace; it need not be known."`
	Limit     []string `sep:"none" placeholder:"NAME=VALUE" help:"A limit and what it is to be: a number, or unlimited. May be given again."`
	Feature   []string `sep:"none" placeholder:"NAME=VALUE" help:"A feature and what it is to be: a number, or unlimited, or true or false where it is on or off. May be given again."`
	Clear     []string `sep:"none" placeholder:"FIELD" help:"What is to be the plan's again: a limit's name, or features.NAME. May be given again."`
	Reason    string   `placeholder:"TEXT" help:"Why; it must be given with what is set."`
	Until     string   `placeholder:"T" help:"When the plan's values hold again, as RFC 3339 or YYYY-MM-DD (UTC). Unless given: never."`
	output
}

// Help says what an override applies to.
func (workspacesOverrideCmd) Help() string {
	return "Without flags it lists what the workspace has of its own. An override applies to the running period at once, keeping what was used, and to " +
		"every later one, on whatever plan; running instances of Headroom are told. It may be less than the plan's. " +
		"What a field had before is replaced whole: value, reason and end."
}

// Run sets and clears, or only looks, and prints the overrides that hold then.
func (c *workspacesOverrideCmd) Run(ctx context.Context, p *program) error {
	if err := checkID("workspace", c.Workspace); err != nil {
		return err
	}
	change, err := c.change()
	if err != nil {
		return &usageError{Err: err}
	}
	return p.withAdmin(ctx, func(a *admin) error {
		held, err := c.carryOut(ctx, a.subscriptions(), change)
		if errors.Is(err, subscriptions.ErrInvalidOverride) {
			return &usageError{Err: err}
		}
		if err != nil {
			return err
		}
		overrides := api.ViewOverrides(held)
		if c.json() {
			return writeIndented(p.stdout, overrides)
		}
		return overrideTable(overrides).write(p.stdout, "no overrides: the plan's terms hold")
	})
}

func (c *workspacesOverrideCmd) carryOut(ctx context.Context, store *subscriptions.Store, change subscriptions.OverrideChange) ([]subscriptions.Override, error) {
	if len(c.Limit)+len(c.Feature)+len(c.Clear) == 0 {
		return store.Overrides(ctx, c.Workspace)
	}
	return store.ChangeOverrides(ctx, change)
}

// change reads the flags, and reports all of their faults at once.
func (c *workspacesOverrideCmd) change() (subscriptions.OverrideChange, error) {
	change := subscriptions.OverrideChange{
		WorkspaceID: c.Workspace, Set: map[string]schemas.Limit{}, Switch: map[string]bool{}, Clear: c.Clear,
		Reason: c.Reason, Cause: "headroom workspaces override",
	}
	var faults []error
	seen := map[string]bool{}
	read := func(flag, prefix string, pairs []string) {
		for _, pair := range pairs {
			name, value, err := parsePair(pair)
			if seen[prefix+name] && err == nil {
				err = errors.New("is given twice; keep one")
			}
			if err == nil && prefix == "" && value.isSwitch {
				err = fmt.Errorf("the value is %t; %s", value.on, numberRule)
			}
			if err != nil {
				faults = append(faults, fmt.Errorf("--%s %q: %w", flag, pair, err))
				continue
			}
			seen[prefix+name] = true
			if value.isSwitch {
				change.Switch[prefix+name] = value.on
			} else {
				change.Set[prefix+name] = value.limit
			}
		}
	}
	read("limit", "", c.Limit)
	read("feature", "features.", c.Feature)
	if c.Until != "" {
		until, err := parseInstant(c.Until)
		if err != nil {
			faults = append(faults, fmt.Errorf("--until: %w", err))
		}
		change.Until = &until
	}
	if (c.Until != "" || c.Reason != "") && len(c.Limit)+len(c.Feature)+len(c.Clear) == 0 {
		faults = append(faults, errors.New("nothing to set: add --limit NAME=VALUE or --feature NAME=VALUE"))
	}
	return change, errors.Join(faults...)
}

// given is a value of the command line: a limit, or a feature that is on or off.
type given struct {
	limit    schemas.Limit
	isSwitch bool
	on       bool
}

const numberRule = "write a whole number from 0, or unlimited"

// parsePair reads NAME=VALUE. There is no value by default: one that is missing
// must not become unlimited, nor nothing.
func parsePair(pair string) (name string, value given, err error) {
	name, text, ok := strings.Cut(pair, "=")
	if !ok || name == "" {
		return "", given{}, errors.New("must be NAME=VALUE, such as max_executions=500")
	}
	switch text {
	case wordUnlimited:
		return name, given{limit: schemas.Unlimited}, nil
	case "true", "on":
		return name, given{isSwitch: true, on: true}, nil
	case "false", "off":
		return name, given{isSwitch: true}, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != text || n < 0 {
		return "", given{}, fmt.Errorf("the value is %q; %s", text, numberRule)
	}
	return name, given{limit: schemas.LimitOf(n)}, nil
}

func overrideTable(overrides []api.OverrideView) *table {
	t := newTable("FIELD", "VALUE", "UNTIL", "SET AT", "SET BY", "REASON")
	for _, o := range overrides {
		until := "-"
		if o.ExpiresAt != nil {
			until = instant(*o.ExpiresAt)
		}
		t.add(o.Field, subscriptions.FeatureKind(o.Kind).Text(schemas.LimitFrom(o.Value)), until, instant(o.SetAt), o.SetBy, o.Reason)
	}
	return t
}
