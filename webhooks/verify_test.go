package webhooks_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headroomhq/headroom/webhooks"
)

func TestSecretsThatLetEverybodyInOrNobodyAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		secrets []string
		want    string
	}{
		"none":           {nil, "is empty"},
		"empty":          {[]string{""}, "secret 1 of 1 is empty"},
		"a comma more":   {[]string{"whsec_good", ""}, "secret 2 of 2 is empty"},
		"blank":          {[]string{" \t"}, "secret 1 of 1 is blank"},
		"line end":       {[]string{"whsec_confidential\n"}, "has blanks or a line end around it"},
		"blank in front": {[]string{"whsec_good", " whsec_confidential"}, "secret 2 of 2 has blanks"},
		"several faults": {[]string{"", "whsec_confidential "}, "secret 2 of 2 has blanks"},
	} {
		_, err := webhooks.NewDoor(webhooks.DoorOptions{Secrets: c.secrets, Log: slog.New(slog.DiscardHandler), Now: time.Now})
		if err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		if !strings.Contains(err.Error(), "HEADROOM_STRIPE_WEBHOOK_SECRETS") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want it to name the setting and say %q", name, err, c.want)
		}
		if strings.Contains(err.Error(), "confidential") {
			t.Errorf("%s: the error tells the secret", name)
		}
	}
}

func TestSignatures(t *testing.T) {
	t.Parallel()
	h := newHouse(t, webhooks.ModeLive)
	body := []byte(event("evt_signed", "customer.subscription.updated", aSubscription))
	now := noon.Unix()
	good, old := sign(body, newSecret, noon), sign(body, oldSecret, noon)
	at := func(offset time.Duration) string { return header(body, newSecret, noon.Add(offset)) }
	// The same instant far away with a signature that is wrong: nobody learns which it was.
	wrongAt := func(offset time.Duration) string {
		return fmt.Sprintf("t=%d,v1=%s", noon.Add(offset).Unix(), strings.Repeat("ab", 32))
	}
	for name, c := range map[string]struct {
		header string
		want   int
		secret string
	}{
		"plain":                          {fmt.Sprintf("t=%d,v1=%s", now, good), 200, newSecret},
		"made with the other secret":     {fmt.Sprintf("t=%d,v1=%s", now, old), 200, oldSecret},
		"two of a rotation":              {fmt.Sprintf("t=%d,v1=%s,v1=%s", now, good, old), 200, newSecret},
		"two, the first unknown":         {fmt.Sprintf("t=%d,v1=%s,v1=%s", now, strings.Repeat("00", 32), old), 200, oldSecret},
		"two, the first no hex":          {fmt.Sprintf("t=%d,v1=zz,v1=%s", now, good), 200, newSecret},
		"v0 besides":                     {fmt.Sprintf("t=%d,v1=%s,v0=%s", now, good, old), 200, newSecret},
		"blanks behind commas":           {fmt.Sprintf("t=%d, v1=%s, v0=x", now, good), 200, newSecret},
		"an unknown part with a =":       {fmt.Sprintf("t=%d,v1=%s,v2=YWI==", now, good), 200, newSecret},
		"an unknown part without one":    {fmt.Sprintf("t=%d,v1=%s,later", now, good), 200, newSecret},
		"time behind the signature":      {fmt.Sprintf("v1=%s,t=%d", good, now), 200, newSecret},
		"300 s old":                      {at(-300 * time.Second), 200, newSecret},
		"300 s ahead":                    {at(300 * time.Second), 200, newSecret},
		"301 s old":                      {at(-301 * time.Second), 400, ""},
		"301 s old and wrong":            {wrongAt(-301 * time.Second), 400, ""},
		"301 s ahead":                    {at(301 * time.Second), 400, ""},
		"an hour ahead":                  {at(time.Hour), 400, ""},
		"an hour ahead and wrong":        {wrongAt(time.Hour), 400, ""},
		"wrong":                          {wrongAt(0), 400, ""},
		"a stranger's secret":            {header(body, "whsec_stranger", noon), 400, ""},
		"made with no secret":            {header(body, "", noon), 400, ""},
		"only v0":                        {fmt.Sprintf("t=%d,v0=%s", now, good), 400, ""},
		"a = too many in v1":             {fmt.Sprintf("t=%d,v1=%s=", now, good), 400, ""},
		"no time":                        {"v1=" + good, 400, ""},
		"a time that is none":            {"t=noon,v1=" + good, 400, ""},
		"a time beyond all":              {"t=9223372036854775807,v1=" + good, 400, ""},
		"two times":                      {fmt.Sprintf("t=%d,t=%d,v1=%s", now-3600, now, good), 400, ""},
		"another time than the signed":   {fmt.Sprintf("t=%d,v1=%s", now+1, good), 400, ""},
		"half a signature":               {fmt.Sprintf("t=%d,v1=%s", now, good[:32]), 400, ""},
		"an empty signature":             {fmt.Sprintf("t=%d,v1=", now), 400, ""},
		"no signature":                   {"", 400, ""},
		"garbage":                        {"=,=,,;", 400, ""},
		"signature of another body":      {header([]byte("{}"), newSecret, noon), 400, ""},
		"signature of the reserialised ": {header([]byte(strings.ReplaceAll(string(body), "\n", "")), newSecret, noon), 400, ""},
	} {
		before := query[int64](t, h.pool, `SELECT count(*) FROM stripe_deliveries`)
		answer := h.post(t, body, c.header)
		if answer.Code != c.want {
			t.Errorf("%s: answered %d %s, want %d", name, answer.Code, answer.Body, c.want)
		}
		if c.want == http.StatusBadRequest {
			if after := query[int64](t, h.pool, `SELECT count(*) FROM stripe_deliveries`); after != before {
				t.Errorf("%s: something was stored", name)
			}
			const said = `{"detail":"the Stripe-Signature header does not prove that Stripe sent this body now",` +
				`"status":400,"title":"Bad Request","type":"about:blank"}` + "\n"
			if got := answer.Body.String(); got != said {
				t.Errorf("%s: answered %q, which tells it from others", name, got)
			}
			continue
		}
		got := query[string](t, h.pool, `SELECT secret FROM stripe_deliveries ORDER BY id DESC LIMIT 1`)
		if got != webhooks.Fingerprint(c.secret) {
			t.Errorf("%s: recorded as made with %s, want the one of %s", name, got, c.secret)
		}
	}
}
