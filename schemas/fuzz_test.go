package schemas_test

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/headroomhq/headroom/schemas"
)

var sameLimit = cmp.Comparer(func(a, b schemas.Limit) bool { return a == b })

func mustRoundTrip(t testing.TB, c codec, subject string, event any) {
	t.Helper()
	body, err := c.encode(event)
	if err != nil {
		t.Fatalf("what Decode accepted does not encode: %v\n%+v", err, event)
	}
	again, err := c.decode(subject, body)
	if err != nil {
		t.Fatalf("what Encode wrote is refused: %v\n%s", err, body)
	}
	// Encode says application/json, whatever the event said before.
	contentType := cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "DataContentType" }, cmp.Ignore())
	if diff := cmp.Diff(event, again, sameLimit, contentType); diff != "" {
		t.Fatalf("encoded and decoded, different (-before +after):\n%s", diff)
	}
}

// monstrous finds a number that the schema validator would write out in full.
var monstrous = regexp.MustCompile(`[eE][+-]?[0-9]{4}`)

// FuzzDecode: nothing panics, what is accepted encodes and decodes to the same,
// and the JSON Schema says what Decode says.
func FuzzDecode(f *testing.F) {
	all := codecs()
	schemata := make([]*jsonschema.Schema, len(all))
	names := make([]map[string]bool, len(all))
	for i, c := range all {
		schemata[i], names[i] = compiled(f, c.typ)
		for s := range c.samples {
			body := mustEncode(c, s)
			f.Add(uint8(i), body)
			for _, b := range broken(body) {
				f.Add(uint8(i), b)
			}
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, body []byte) {
		i := int(kind) % len(all)
		reason := reasonOf(t, all[i], "headroom.x."+workspaceOf(body), body)
		if len(body) > schemas.MaxBody || monstrous.Match(body) {
			return
		}
		if err := bySchema(schemata[i], names[i], body); (err == nil) != (reason == "") {
			t.Errorf("Decode says %q, the schema says %v, of %s", reason, err, body)
		}
	})
}
