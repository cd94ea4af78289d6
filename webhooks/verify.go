package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v79/webhook"
)

// secretsSetting is what an operator changes when a secret is refused.
const secretsSetting = "HEADROOM_STRIPE_WEBHOOK_SECRETS"

// tolerance bounds the age of a signature, and how far ahead of this clock it may
// be. Without it whoever captured a body could send it again for ever.
const tolerance = 300 * time.Second

// errUnverified is all that a stranger is told, whatever was wrong.
var errUnverified = errors.New("the Stripe-Signature header does not prove that Stripe sent this body now")

// verifier checks signatures against every secret in force.
type verifier struct{ secrets []signingSecret }

// signingSecret is a secret and the name under which it may be written down.
type signingSecret struct{ text, fingerprint string }

// proof is what a signature that holds tells.
type proof struct {
	signedAt time.Time
	// secret is the fingerprint of the secret that it was made with.
	secret string
}

// newVerifier refuses secrets that would let everybody in or nobody: an empty
// secret verifies what was signed with nothing, one with a line end at its end
// verifies nothing. No error contains any part of a secret.
func newVerifier(secrets []string) (verifier, error) {
	if len(secrets) == 0 {
		return verifier{}, fmt.Errorf("%s: is empty: set the signing secret of the endpoint (whsec_…)", secretsSetting)
	}
	var (
		v      verifier
		faults []error
	)
	for i, secret := range secrets {
		if fault := faultOf(secret); fault != "" {
			faults = append(faults, fmt.Errorf("%s: secret %d of %d %s", secretsSetting, i+1, len(secrets), fault))
		}
		v.secrets = append(v.secrets, signingSecret{text: secret, fingerprint: fingerprint(secret)})
	}
	if len(faults) > 0 {
		return verifier{}, errors.Join(faults...)
	}
	return v, nil
}

func faultOf(secret string) string {
	switch {
	case secret == "":
		return "is empty: look for a comma too many"
	case strings.TrimSpace(secret) == "":
		return "is blank"
	case strings.TrimSpace(secret) != secret:
		return "has blanks or a line end around it"
	default:
		return ""
	}
}

// fingerprint tells secrets apart in records and logs.
func fingerprint(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:6])
}

// verify checks a body that arrived at the instant. Any of the header's signatures may match
// any of the secrets, so that a rotation loses nothing. The time is looked at when the
// signature holds, and the error is the same: an answer tells nobody which it was.
func (v verifier) verify(body []byte, header string, arrived time.Time) (proof, error) {
	signed, err := parseSignature(header)
	if err != nil {
		return proof{}, err
	}
	made := proof{signedAt: signed.at}
	for _, secret := range v.secrets {
		expected := webhook.ComputeSignature(signed.at, body, secret.text)
		for _, signature := range signed.signatures {
			if hmac.Equal(expected, signature) && made.secret == "" {
				made.secret = secret.fingerprint
			}
		}
	}
	age := arrived.Sub(signed.at)
	if made.secret == "" || age > tolerance || age < -tolerance {
		return proof{}, errUnverified
	}
	return made, nil
}

// signature is a Stripe-Signature header: t=…,v1=…[,v1=…][,v0=…].
type signature struct {
	at         time.Time
	signatures [][]byte
}

// parseSignature takes t and v1 from the header and leaves the rest alone, which is
// for schemes to come. A proxy may have put blanks behind the commas.
func parseSignature(header string) (signature, error) {
	var (
		s     signature
		timed bool
	)
	for pair := range strings.SplitSeq(header, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		switch name {
		case "t":
			seconds, err := strconv.ParseInt(value, 10, 64)
			if err != nil || timed {
				return signature{}, errUnverified
			}
			s.at, timed = time.Unix(seconds, 0).UTC(), true
		case "v1":
			if made, err := hex.DecodeString(value); err == nil {
				s.signatures = append(s.signatures, made)
			}
		}
	}
	if !timed || len(s.signatures) == 0 {
		return signature{}, errUnverified
	}
	return s, nil
}
