package main

import "regexp"

// secret is a form of text that no test may print.
type secret struct {
	kind string
	form *regexp.Regexp
}

// secrets are those that are looked for. A test's own passwords have a beginning that is
// known (see devstack); the others are the forms that real secrets have.
func secrets() []secret {
	return []secret{
		{"the password of a private service", regexp.MustCompile(`devstack-secret-[A-Z2-7]{4}`)},
		{"a signing secret of a webhook", regexp.MustCompile(`\bwhsec_[A-Za-z0-9+/=]{8}`)},
		{"a Stripe key", regexp.MustCompile(`\b[sr]k_(live|test)_[A-Za-z0-9]{8}`)},
		{"a bearer token", regexp.MustCompile(`(?i)\bbearer [A-Za-z0-9._~+/-]{16}`)},
		{"a private key", regexp.MustCompile(`BEGIN [A-Z ]*(PRIVATE KEY|NKEY SEED)`)},
		{"a password in a URL", regexp.MustCompile(`\b[a-z]+://[^\s/:@"]*:[^\s/@"]{8,}@`)},
	}
}

// shown is what kind of secret a line of output shows, empty for none.
func (r *report) shown(line string) string {
	for _, s := range r.secrets {
		if s.form.MatchString(line) {
			return s.kind
		}
	}
	return ""
}
