package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// variablePrefix begins the name of every setting.
const variablePrefix = "HEADROOM_"

// Config is what the environment says. settings.go holds each field's
// variable, default and rule; README's table is made from it.
type Config struct {
	// NATSURL lists the servers, comma separated. Default nats://127.0.0.1:4222.
	NATSURL Secret
	// NATSCreds is the path of a credentials file. Default none.
	NATSCreds string
	// NATSCert and NATSKey are the paths of a client certificate and its key, as PEM. With
	// them a connection without TLS is refused. Default none.
	NATSCert, NATSKey string
	// NATSReplicas is how many servers keep each stream, 1 to 5. Default 1.
	NATSReplicas int
	// SubjectPrefix is the first token or tokens of every subject. Default headroom.
	SubjectPrefix string
	// RedisURL is one server, several (Cluster), or a Sentinel set. Default redis://127.0.0.1:6379/0.
	RedisURL Secret
	// RedisPrefix is the first part of every key. Default headroom.
	RedisPrefix string
	// RedisInvalidationChannel is where invalidations are also published. Default none.
	RedisInvalidationChannel string
	// PostgresURL is the database. Default postgres://127.0.0.1:5432/headroom.
	PostgresURL Secret
	// HTTPAddr is where HTTP is served; port 0 takes a free one. Default 127.0.0.1:8080.
	HTTPAddr string
	// APITokens are who may use the API. Default none: everybody on this machine.
	APITokens Secret
	// Workers is how many batches of each kind are worked on at once. Default 2.
	Workers int
	// BatchSize is how many events one batch has at most. Default 512.
	BatchSize int
	// UnavailableBudget is how long an admission waits for Redis or Postgres
	// before it is denied with 9008. Default 10s.
	UnavailableBudget time.Duration
	// RebuildFence is how long after it was asked for a decision may still be published,
	// and nobody is admitted after Redis lost its memory. Default 2s.
	RebuildFence time.Duration
	// LeaseGrace is added to the plan's maximum duration to make a lease. Default 5m.
	LeaseGrace time.Duration
	// LeaseDefault is the lease where the plan has no maximum duration. Default 24h.
	LeaseDefault time.Duration
	// PlanCacheTTL is how long a workspace's plan is used before it is read again. Default 30m.
	PlanCacheTTL time.Duration
	// StripeWebhookSecrets are the endpoint's signing secrets, comma separated, several
	// during a rotation. Default none: then nothing is received.
	StripeWebhookSecrets Secret
	// StripeAPIKey makes objects be fetched, and events swept. Default none.
	StripeAPIKey Secret
	// StripeAPIURL is Stripe's unless set.
	StripeAPIURL string
	// StripeOnDispute is none or hold. Default none.
	StripeOnDispute string
	// StripeMode is live, test or any. Default live.
	StripeMode string
	// PastDueGrace is how long a past_due subscription counts, from the start of the
	// first unpaid period. Default 14d; 0 is none.
	PastDueGrace time.Duration
	// OverdueGrace is how long a Stripe period goes on after its end without news.
	// Default 72h; 0 is none.
	OverdueGrace time.Duration
	// UnpaidPeriod is grant or hold. Default grant.
	UnpaidPeriod string
	// AnchorResetUsage and PlanChangeUsage are carry or reset. Default carry.
	AnchorResetUsage string
	PlanChangeUsage  string
	// UnknownWorkspace is default or deny. Default default.
	UnknownWorkspace string
	// Shadow decides and publishes, and denies nothing. Default false.
	Shadow bool
	// LogLevel is the lowest level logged. Default info.
	LogLevel slog.Level
	// LogFormat is auto, tint or json. Default auto: tint on a terminal.
	LogFormat string
}

// What the settings that are words may be.
const (
	logFormatAuto = "auto"
	logFormatTint = "tint"
	logFormatJSON = "json"

	unknownDefault = "default"
	unknownDeny    = "deny"

	unpaidGrant = "grant"
	unpaidHold  = "hold"

	disputeNone = "none"
	disputeHold = "hold"

	usageCarry = "carry"
	usageReset = "reset"
)

// ConfigError is everything that is wrong with the settings, one fault each.
type ConfigError struct{ Faults []error }

// Error puts each fault on a line of its own; none shows a secret.
func (e *ConfigError) Error() string {
	lines := []string{fmt.Sprintf("the settings have %s:", counted(len(e.Faults), "fault"))}
	for _, fault := range e.Faults {
		lines = append(lines, "  "+fault.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap is the faults.
func (e *ConfigError) Unwrap() []error { return e.Faults }

// LoadConfig reads every setting. All faults come back in one *ConfigError,
// each naming its variable and what it allows. A setting that holds a secret
// may be in a file that <variable>_FILE names instead, read with readFile.
func LoadConfig(getenv func(string) string, readFile func(string) ([]byte, error)) (Config, error) {
	var config Config
	var faults []error
	for _, s := range settings() {
		text, err := s.read(getenv, readFile)
		if err == nil {
			err = s.set(&config, text)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", s.Name, err))
		}
	}
	faults = append(faults, config.checkNATS(readFile)...)
	if err := config.checkStripe(); err != nil {
		faults = append(faults, err)
	}
	// A fence beside a setting that is wrong itself is not judged.
	if len(faults) == 0 {
		if err := config.checkFence(); err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) > 0 {
		return Config{}, &ConfigError{Faults: faults}
	}
	return config, nil
}

// read is the setting's text: from the environment, from its file, or the default.
func (s setting) read(getenv func(string) string, readFile func(string) ([]byte, error)) (string, error) {
	text := getenv(s.Name)
	path := ""
	if s.Secret {
		path = getenv(s.Name + fileSuffix)
	}
	switch {
	case text != "" && path != "":
		return "", fmt.Errorf("is given both here and as %s%s; keep one of them", s.Name, fileSuffix)
	case path != "":
		body, err := readFile(path)
		if err != nil {
			return "", fmt.Errorf("read the file that %s%s names: %w", s.Name, fileSuffix, err)
		}
		text = strings.TrimRight(string(body), "\r\n")
		if text == "" {
			return "", errors.New("the file " + path + " is empty")
		}
	case text == "":
		text = s.Default
	}
	return text, nil
}
