package main

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/headroomhq/headroom/webhooks"
)

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

func setStripeMode(field *string, text string) error {
	return setOneOf(field, text, string(webhooks.ModeLive), string(webhooks.ModeTest), string(webhooks.ModeAny))
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
