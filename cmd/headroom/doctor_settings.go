package main

import (
	"context"
	"errors"
	"strings"
)

func settingsDiagnoses() []diagnosis {
	const service = "settings"
	return []diagnosis{
		{
			"settings.values", service, "a setting has a fault; its default is used for the checks that follow, and a service whose address is faulty is not checked", "",
			"correct the variables that are named; README lists what each allows",
		},
		{
			"settings.unused", service, "", "a `HEADROOM_` variable that is no setting is set",
			"correct its name, or remove it",
		},
		{
			"settings.tokens", service, "the API is reached from other machines and asks for no token: `serve` does not start", "",
			"set HEADROOM_API_TOKENS to name:token with a token of 16 characters or more, or HEADROOM_HTTP_ADDR to a loopback address",
		},
		{
			"settings.stripe", service, "", "one of HEADROOM_STRIPE_WEBHOOK_SECRETS and HEADROOM_STRIPE_API_KEY is set without the other",
			"set both: without the key what was missed is not repaired, without the secrets news come with the next comparison, hours later",
		},
		{
			"settings.shadow", service, "", "HEADROOM_SHADOW is on: nobody is denied",
			"set HEADROOM_SHADOW to false when the limits are to hold",
		},
	}
}

// readSettings reads what can be read: a setting with a fault has its default.
func (d *doctor) readSettings(readFile func(string) ([]byte, error), environ []string) {
	d.faulty = make(map[string]bool)
	sound := func(name string) string {
		if d.faulty[strings.TrimSuffix(name, fileSuffix)] {
			return ""
		}
		return d.getenv(name)
	}
	config, err := LoadConfig(sound, readFile)
	var texts []string
	if faults, ok := errors.AsType[*ConfigError](err); ok {
		for _, fault := range faults.Faults {
			texts = append(texts, fault.Error())
			name, _, _ := strings.Cut(fault.Error(), ":")
			d.faulty[name] = true
		}
		config, err = LoadConfig(sound, readFile)
	}
	d.config = config
	switch {
	case len(texts) > 0:
		d.found("settings.values", fails("%s", strings.Join(texts, "; ")).with("faults", texts))
	case err != nil:
		d.found("settings.values", unasked(err))
	default:
		d.found("settings.values", passes("every setting can be understood").with("faults", list(texts)))
	}
	d.found("settings.unused", judgeUnused(unusedVariables(d.getenv, environ)))
}

func judgeUnused(unused []unusedVariable) judgement {
	var names, texts []string
	for _, u := range unused {
		names = append(names, u.Variable)
		texts = append(texts, u.Variable+": "+u.Reason)
	}
	if len(unused) > 0 {
		return warns("%s", strings.Join(texts, "; ")).with("variables", names)
	}
	return passes("every HEADROOM_ variable has an effect").with("variables", list(names))
}

func (d *doctor) settingsChecks() []examination {
	of := func(judge func(Config) judgement) func(context.Context) judgement {
		return func(context.Context) judgement { return judge(d.config) }
	}
	return []examination{
		{"settings.tokens", of(judgeTokens)},
		{"settings.stripe", of(judgeStripeSettings)},
		{"settings.shadow", of(judgeShadow)},
	}
}

func judgeTokens(c Config) judgement {
	open, loopback := c.isOpen(), isLoopback(c.HTTPAddr)
	j := passes("the API asks for a token")
	switch {
	case open && !loopback:
		j = fails("HEADROOM_HTTP_ADDR %s is reached from other machines and HEADROOM_API_TOKENS is not set", c.HTTPAddr)
	case open:
		j = passes("the API asks for no token, and only this machine reaches %s", c.HTTPAddr)
	}
	return j.with("address", c.HTTPAddr).with("tokens", !open)
}

func judgeStripeSettings(c Config) judgement {
	secrets, key := c.StripeWebhookSecrets.Reveal() != "", c.StripeAPIKey.Reveal() != ""
	j := passes("Stripe is not followed")
	switch {
	case secrets && key:
		j = passes("Stripe's events are received, and its API can be asked")
	case secrets:
		j = warns("HEADROOM_STRIPE_WEBHOOK_SECRETS is set and HEADROOM_STRIPE_API_KEY is not")
	case key:
		j = warns("HEADROOM_STRIPE_API_KEY is set and HEADROOM_STRIPE_WEBHOOK_SECRETS is not")
	}
	return j.with("webhook_secrets", secrets).with("api_key", key)
}

func judgeShadow(c Config) judgement {
	j := passes("limits hold")
	if c.Shadow {
		j = warns("HEADROOM_SHADOW is on: every execution is let in, whatever is decided")
	}
	return j.with("shadow", c.Shadow)
}
