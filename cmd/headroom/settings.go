package main

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// fileSuffix ends the variable that names a file with the secret in it.
const fileSuffix = "_FILE"

// Setting is one environment variable as README's table shows it.
type Setting struct {
	// Name is the whole variable, HEADROOM_ included.
	Name string
	// Default is the text that stands for an unset variable; empty is none.
	Default string
	// Meaning is one sentence, with the values that are allowed.
	Meaning string
	// Secret is true where the value may carry a password: it is never printed,
	// and Name + "_FILE" may name a file with it instead.
	Secret bool
}

// Settings lists every setting that has an effect, in the order of the contract.
func Settings() []Setting {
	list := make([]Setting, 0, len(settings()))
	for _, s := range settings() {
		list = append(list, s.Setting)
	}
	return list
}

// setting is a Setting with the rule that turns its text into the field. The
// error of set says what is allowed and repeats no secret.
type setting struct {
	Setting
	set func(c *Config, text string) error
}

func settings() []setting {
	return slices.Concat(connectionSettings(), stripeSettings(), policySettings(), workSettings())
}

func connectionSettings() []setting {
	return []setting{
		{
			Setting{"HEADROOM_NATS_URL", "nats://127.0.0.1:4222", "NATS servers, comma separated: `nats://`, `tls://`, `ws://` or `wss://`.", true},
			func(c *Config, text string) error { return setSecret(&c.NATSURL, text, checkNATSURL) },
		},
		{
			Setting{"HEADROOM_NATS_CREDS", "", "Path of a NATS credentials file.", false},
			func(c *Config, text string) error { c.NATSCreds = text; return nil },
		},
		{
			Setting{"HEADROOM_NATS_CERT", "", "Path of a client certificate for NATS, PEM, with `HEADROOM_NATS_KEY`; a connection without TLS is then refused.", false},
			func(c *Config, text string) error { c.NATSCert = text; return nil },
		},
		{
			Setting{"HEADROOM_NATS_KEY", "", "Path of that certificate's key, PEM.", false},
			func(c *Config, text string) error { c.NATSKey = text; return nil },
		},
		{
			Setting{"HEADROOM_NATS_REPLICAS", "1", "Replicas of the streams that Headroom creates, 1 to 5.", false},
			func(c *Config, text string) error { return setInt(&c.NATSReplicas, text, 1, 5) },
		},
		{
			Setting{"HEADROOM_SUBJECT_PREFIX", "headroom", "First token, or tokens with dots between, of every subject: letters, digits, `_`, `-`.", false},
			func(c *Config, text string) error { return setSubject(&c.SubjectPrefix, text) },
		},
		{
			Setting{"HEADROOM_REDIS_URL", "redis://127.0.0.1:6379/0", "Redis: `redis://` or `rediss://`; several hosts separated by commas are a Cluster; `?master_name=` makes them Sentinels.", true},
			func(c *Config, text string) error { return setSecret(&c.RedisURL, text, checkRedisURL) },
		},
		{
			Setting{"HEADROOM_REDIS_PREFIX", "headroom", "First part of every Redis key: letters, digits, `_`, `-`, `.`, `:`.", false},
			func(c *Config, text string) error { return setKeyPrefix(&c.RedisPrefix, text) },
		},
		{
			Setting{"HEADROOM_REDIS_INVALIDATION_CHANNEL", "", "Also publish what invalidates a plan on this Redis pub/sub channel: letters, digits, `_`, `-`, `.`, `:`.", false},
			func(c *Config, text string) error { return setKeyPrefix(&c.RedisInvalidationChannel, text) },
		},
		{
			Setting{"HEADROOM_POSTGRES_URL", "postgres://127.0.0.1:5432/headroom", "PostgreSQL: `postgres://` or `postgresql://`.", true},
			func(c *Config, text string) error { return setSecret(&c.PostgresURL, text, checkPostgresURL) },
		},
		{
			Setting{"HEADROOM_HTTP_ADDR", "127.0.0.1:8080", "Where the API, `/healthz`, `/readyz`, `/webhooks/stripe` and `/metrics` are served, `host:port`; port 0 takes a free one.", false},
			func(c *Config, text string) error { return setAddr(&c.HTTPAddr, text) },
		},
		{
			Setting{"HEADROOM_API_TOKENS", "", "Who may use the API: `name:token` or `name:token:scope+scope`, with commas or line ends between. Scopes are `read`, `execute` and `admin`, which holds the others; `read+execute` unless given. A token has 16 characters or more. Without any everybody may, and only a loopback `HEADROOM_HTTP_ADDR` is served. `/metrics` needs `read` on any other address.", true},
			func(c *Config, text string) error { return setTokens(&c.APITokens, text) },
		},
	}
}

// stripeSettings are what is needed to follow Stripe.
func stripeSettings() []setting {
	return []setting{
		{
			Setting{"HEADROOM_STRIPE_WEBHOOK_SECRETS", "", "Signing secrets of the Stripe endpoint (`whsec_…`), comma separated, several during a rotation. Without any, `/webhooks/stripe` is not served.", true},
			func(c *Config, text string) error { return setSigningSecrets(&c.StripeWebhookSecrets, text) },
		},
		{
			Setting{"HEADROOM_STRIPE_API_KEY", "", "A Stripe key that may read: subscriptions are fetched, events swept, and what was missed repaired.", true},
			func(c *Config, text string) error { return setSecret(&c.StripeAPIKey, text, checkStripeKey) },
		},
		{
			Setting{"HEADROOM_STRIPE_API_URL", "", "Where the Stripe API is, `http://` or `https://`; Stripe's own unless set.", false},
			func(c *Config, text string) error { return setStripeURL(&c.StripeAPIURL, text) },
		},
		{
			Setting{"HEADROOM_STRIPE_ON_DISPUTE", disputeNone, "`none`: a dispute is recorded. `hold`: a subscription does not count while a dispute has withdrawn its money.", false},
			func(c *Config, text string) error {
				return setOneOf(&c.StripeOnDispute, text, disputeNone, disputeHold)
			},
		},
		{
			Setting{"HEADROOM_STRIPE_MODE", "live", "Whose subscriptions are followed: `live`, `test` or `any`. What is of the other mode is recorded and ignored.", false},
			func(c *Config, text string) error { return setStripeMode(&c.StripeMode, text) },
		},
	}
}

// policySettings are what an installation decides about subscriptions.
func policySettings() []setting {
	return []setting{
		{
			Setting{"HEADROOM_PAST_DUE_GRACE", "14d", "How long a `past_due` subscription still counts, from the start of the first unpaid period; 0s is not at all.", false},
			func(c *Config, text string) error { return setDuration(&c.PastDueGrace, text, 0) },
		},
		{
			Setting{"HEADROOM_OVERDUE_GRACE", "72h", "How long a Stripe period that is over without news still counts; 0s is not at all.", false},
			func(c *Config, text string) error { return setDuration(&c.OverdueGrace, text, 0) },
		},
		{
			Setting{"HEADROOM_UNPAID_PERIOD", unpaidGrant, "`grant`: a period counts before it is paid. `hold`: the workspace stays on the period before until then.", false},
			func(c *Config, text string) error { return setOneOf(&c.UnpaidPeriod, text, unpaidGrant, unpaidHold) },
		},
		{
			Setting{"HEADROOM_ANCHOR_RESET_USAGE", usageCarry, "When a period begins early because its anchor moved. `carry`: the usage goes on. `reset`: a fresh quota.", false},
			func(c *Config, text string) error { return setOneOf(&c.AnchorResetUsage, text, usageCarry, usageReset) },
		},
		{
			Setting{"HEADROOM_PLAN_CHANGE_USAGE", usageCarry, "When a period begins early because its plan changed. `carry`: the usage goes on. `reset`: a fresh quota.", false},
			func(c *Config, text string) error { return setOneOf(&c.PlanChangeUsage, text, usageCarry, usageReset) },
		},
	}
}

func workSettings() []setting {
	return []setting{
		{
			Setting{"HEADROOM_WORKERS", "2", "How many batches of events are worked on at once, 1 to 64.", false},
			func(c *Config, text string) error { return setInt(&c.Workers, text, 1, 64) },
		},
		{
			Setting{"HEADROOM_BATCH_SIZE", "512", "How many events a batch has at most, 1 to 1000. A batch never waits to be full.", false},
			func(c *Config, text string) error { return setInt(&c.BatchSize, text, 1, 1000) },
		},
		{
			Setting{"HEADROOM_UNAVAILABLE_BUDGET", "10s", "How long an admission is put off while Redis or PostgreSQL is away before it is denied with 9008; at least 1s.", false},
			func(c *Config, text string) error { return setDuration(&c.UnavailableBudget, text, time.Second) },
		},
		{
			Setting{"HEADROOM_REBUILD_FENCE", "2s", "How long a decision may take, and so how long nothing is admitted after Redis lost its memory; at least 100ms, the same for all instances, and less than the budget.", false},
			func(c *Config, text string) error { return setDuration(&c.RebuildFence, text, 100*time.Millisecond) },
		},
		{
			Setting{"HEADROOM_LEASE_GRACE", "5m", "Added to the plan's maximum duration to make a lease; 0s or more.", false},
			func(c *Config, text string) error { return setDuration(&c.LeaseGrace, text, 0) },
		},
		{
			Setting{"HEADROOM_LEASE_DEFAULT", "24h", "The lease where the plan has no maximum duration; at least 1m.", false},
			func(c *Config, text string) error { return setDuration(&c.LeaseDefault, text, time.Minute) },
		},
		{
			Setting{"HEADROOM_PLAN_CACHE_TTL", "30m", "How long a workspace's plan is used before it is read again; at least 1s.", false},
			func(c *Config, text string) error { return setDuration(&c.PlanCacheTTL, text, time.Second) },
		},
		{
			Setting{"HEADROOM_UNKNOWN_WORKSPACE", unknownDefault, "`default`: a workspace never seen is on the default plan. `deny`: it is not entitled.", false},
			func(c *Config, text string) error {
				return setOneOf(&c.UnknownWorkspace, text, unknownDefault, unknownDeny)
			},
		},
		{
			Setting{"HEADROOM_SHADOW", "false", "`true`: decide and publish with `shadow: true`, deny nothing.", false},
			func(c *Config, text string) error { return setBool(&c.Shadow, text) },
		},
		{
			Setting{"HEADROOM_LOG_LEVEL", "info", "`debug`, `info`, `warn` or `error`.", false},
			func(c *Config, text string) error { return setLevel(&c.LogLevel, text) },
		},
		{
			Setting{"HEADROOM_LOG_FORMAT", logFormatAuto, "`auto`, `tint` or `json`. `auto` is `tint` on a terminal and `json` elsewhere.", false},
			func(c *Config, text string) error {
				return setOneOf(&c.LogFormat, text, logFormatAuto, logFormatTint, logFormatJSON)
			},
		},
	}
}

func setLevel(field *slog.Level, text string) error {
	var name string
	if err := setOneOf(&name, strings.ToLower(text), "debug", "info", "warn", "error"); err != nil {
		return err
	}
	if err := field.UnmarshalText([]byte(name)); err != nil {
		return fmt.Errorf("read the level: %w", err)
	}
	return nil
}
