package main

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/headroomhq/headroom/webhooks"
)

// stripeSettings are what is needed to follow Stripe.
func stripeSettings() []setting {
	modes := []string{string(webhooks.ModeLive), string(webhooks.ModeTest), string(webhooks.ModeAny)}
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
			Setting{"HEADROOM_STRIPE_MODE", modes[0], "Whose subscriptions are followed: `live`, `test` or `any`. What is of the other mode is recorded and ignored.", false},
			func(c *Config, text string) error { return setOneOf(&c.StripeMode, text, modes...) },
		},
	}
}

// setSigningSecrets refuses what would let everybody in, or nobody: an empty secret
// verifies what was signed with nothing.
func setSigningSecrets(field *Secret, text string) error {
	if text == "" {
		return nil
	}
	for i, secret := range strings.Split(text, ",") {
		switch {
		case strings.TrimSpace(secret) == "":
			return fmt.Errorf("secret %d is empty or blank: look for a comma too many", i+1)
		case strings.TrimSpace(secret) != secret:
			return fmt.Errorf("secret %d has blanks or a line end around it", i+1)
		}
	}
	*field = NewSecret(text)
	return nil
}

// signingSecrets are the secrets one by one, none if there are none.
func (c Config) signingSecrets() []string {
	text := c.StripeWebhookSecrets.Reveal()
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

func checkStripeKey(text string) error {
	if strings.HasPrefix(text, "pk_") {
		return errors.New("is a publishable key, which may read nothing; take a restricted key (rk_…) or a secret one (sk_…)")
	}
	if strings.ContainsAny(text, " \t\r\n,") {
		return errors.New("must be one key, without blanks or commas")
	}
	return nil
}

func setStripeURL(field *string, text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || !slices.Contains([]string{"http", "https"}, u.Scheme) {
		return errors.New("must be http:// or https:// with a host, such as https://api.stripe.com")
	}
	*field = text
	return nil
}

// checkStripe finds a key that can see nothing of what is followed: it would look up
// nothing, and nobody would notice.
func (c Config) checkStripe() error {
	key, mode := c.StripeAPIKey.Reveal(), webhooks.Mode(c.StripeMode)
	for _, of := range []struct {
		mode webhooks.Mode
		mark string
	}{{webhooks.ModeLive, "k_live_"}, {webhooks.ModeTest, "k_test_"}} {
		if len(key) > 1 && strings.HasPrefix(key[1:], of.mark) && mode != "" && mode != of.mode && mode != webhooks.ModeAny {
			return fmt.Errorf("HEADROOM_STRIPE_API_KEY: is a key of %s mode, and HEADROOM_STRIPE_MODE is %s", of.mode, mode)
		}
	}
	return nil
}
