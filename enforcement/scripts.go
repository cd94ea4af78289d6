package enforcement

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed scripts/struct.lua
	structSource string
	//go:embed scripts/prelude.lua
	preludeSource string
	//go:embed scripts/admit.lua
	admitSource string
	//go:embed scripts/open.lua
	openSource string
	//go:embed scripts/state.lua
	stateSource string
	//go:embed scripts/begin.lua
	beginSource string
	//go:embed scripts/rebuild.lua
	rebuildSource string
	//go:embed scripts/abandon.lua
	abandonSource string
	//go:embed scripts/shut.lua
	shutSource string
	//go:embed scripts/release.lua
	releaseSource string
	//go:embed scripts/standing.lua
	standingSource string
	//go:embed scripts/extend.lua
	extendSource string
	//go:embed scripts/withdraw.lua
	withdrawSource string
	//go:embed scripts/usage.lua
	usageSource string
	//go:embed scripts/running.lua
	runningSource string

	prelude = structSource + preludeSource

	admitScript    = redis.NewScript(prelude + admitSource)
	openScript     = redis.NewScript(prelude + stateSource + openSource)
	beginScript    = redis.NewScript(prelude + beginSource)
	rebuildScript  = redis.NewScript(prelude + stateSource + rebuildSource)
	abandonScript  = redis.NewScript(prelude + abandonSource)
	shutScript     = redis.NewScript(prelude + shutSource)
	releaseScript  = redis.NewScript(prelude + releaseSource)
	standingScript = redis.NewScript(prelude + standingSource)
	extendScript   = redis.NewScript(prelude + extendSource)
	withdrawScript = redis.NewScript(prelude + withdrawSource)
	usageScript    = redis.NewScript(prelude + usageSource)
	runningScript  = redis.NewScript(prelude + runningSource)
)

// call is one run of a script against one workspace.
type call struct {
	script *redis.Script
	keys   []string
	args   []any

	reply []any
	err   error
}

// run sends all calls in one round trip. A server that does not know a script
// (restarted, failed over, flushed) gets its text, for those calls alone: a
// pipeline has no fallback of its own, and the calls beside them did run. Every
// script leaves after a second run what it left after the first, and its answer
// says what that is, so a call whose reply was lost may be sent again.
func (e *Enforcer) run(ctx context.Context, calls []*call) {
	e.pipeline(ctx, calls, func(p redis.Pipeliner, c *call) *redis.Cmd {
		return c.script.EvalSha(ctx, p, c.keys, c.args...)
	})
	var unknown []*call
	for _, c := range calls {
		if redis.HasErrorPrefix(c.err, "NOSCRIPT") {
			unknown = append(unknown, c)
		}
	}
	if len(unknown) > 0 {
		e.pipeline(ctx, unknown, func(p redis.Pipeliner, c *call) *redis.Cmd {
			return c.script.Eval(ctx, p, c.keys, c.args...)
		})
	}
	for _, c := range calls {
		if c.err != nil {
			c.err = fmt.Errorf("run script for %s: %w: %w", c.keys[0], ErrUnavailable, c.err)
		}
	}
}

func (e *Enforcer) pipeline(ctx context.Context, calls []*call, send func(redis.Pipeliner, *call) *redis.Cmd) {
	pipe := e.redis.Pipeline()
	commands := make([]*redis.Cmd, len(calls))
	for i, c := range calls {
		commands[i] = send(pipe, c)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error, also where all share one
	for i, c := range calls {
		c.reply, c.err = commands[i].Slice()
		if c.err == nil && len(c.reply) < 2 {
			c.err = fmt.Errorf("reply has %d values, at least 2 expected", len(c.reply))
		}
		if c.err == nil {
			e.clock.observe(integer(c.reply[1]), e.now())
		}
	}
}

// integer and text read a value of a reply; what is of another type is zero, and
// is then refused by whoever checks the length or the range.
func integer(v any) int64 {
	n, _ := v.(int64)
	return n
}

func text(v any) string {
	s, _ := v.(string)
	return s
}
