package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestSigningSecretsThatVerifyNothingOrEverythingAreRefused(t *testing.T) {
	t.Parallel()
	const secret = "whsec_c29tZXRoaW5n"
	for name, test := range map[string]struct{ text, fault string }{
		"blank":               {" ", "secret 1 is empty or blank"},
		"an empty one":        {secret + ",", "secret 2 is empty or blank"},
		"nothing but a comma": {",", "secret 1 is empty or blank"},
		"a blank before one":  {secret + ", " + secret, "secret 2 has blanks or a line end around it"},
		"a line end":          {secret + "\n", "secret 1 has blanks or a line end around it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := LoadConfig(environ(map[string]string{"HEADROOM_STRIPE_WEBHOOK_SECRETS": test.text}), noFiles)
			if err == nil || !strings.Contains(err.Error(), "HEADROOM_STRIPE_WEBHOOK_SECRETS: "+test.fault) || strings.Contains(err.Error(), secret) {
				t.Errorf("the fault is %v, want %q and no secret", err, test.fault)
			}
		})
	}
}

func TestSigningSecretsArePrintedAsStars(t *testing.T) {
	t.Parallel()
	config, err := LoadConfig(environ(map[string]string{
		"HEADROOM_STRIPE_WEBHOOK_SECRETS": "whsec_a,whsec_b", "HEADROOM_STRIPE_API_KEY": "sk_live_c",
	}), noFiles)
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprintf("%v %+v %s", config, config, config.StripeAPIKey); strings.Contains(text, "whsec_") || strings.Contains(text, "sk_live") || !strings.Contains(text, redacted) {
		t.Errorf("printed: %s", text)
	}
	if got := config.signingSecrets(); len(got) != 2 || got[1] != "whsec_b" {
		t.Errorf("the secrets are %d", len(got))
	}
}

func TestAKeyThatSeesNothingOfWhatIsFollowedIsRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		key, mode string
		refused   bool
	}{
		{"sk_live_1", "live", false},
		{"rk_test_1", "test", false},
		{"sk_test_1", "any", false},
		{"sk_live_1", "any", false},
		{"sk_test_1", "live", true},
		{"rk_live_1", "test", true},
		{"other", "live", false},
	} {
		_, err := LoadConfig(environ(map[string]string{"HEADROOM_STRIPE_API_KEY": test.key, "HEADROOM_STRIPE_MODE": test.mode}), noFiles)
		if (err != nil) != test.refused || err != nil && strings.Contains(err.Error(), test.key) {
			t.Errorf("key %s with mode %s: %v", test.key, test.mode, err)
		}
	}
}
