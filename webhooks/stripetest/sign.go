package stripetest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// Sign is the Stripe-Signature header of a body sent at a time: one v1 for each secret,
// as while a secret is being rolled.
func Sign(body []byte, at time.Time, secrets ...string) string {
	parts := []string{fmt.Sprintf("t=%d", at.Unix())}
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, []byte(secret))
		fmt.Fprintf(mac, "%d.%s", at.Unix(), body)
		parts = append(parts, "v1="+hex.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(parts, ",")
}
