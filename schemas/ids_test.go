package schemas_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/headroomhq/headroom/schemas"
)

func TestValidIDIsThePatternOfTheContract(t *testing.T) {
	t.Parallel()
	pattern := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)
	ids := []string{
		"", "a", "Z", "0", "-a", "_a", "ws_abc", "01ARZ3NDEKTSV4RRFFQ69G5FAV", subscriptionID,
		"a.b", "a b", "a*", ">", "{a}", "a\n", "\x00", "é", "aé", "a\xff",
		strings.Repeat("a", 128), strings.Repeat("a", 129), strings.Repeat("é", 64),
	}
	for c := range 256 {
		ids = append(ids, string([]byte{byte(c)}), "a"+string([]byte{byte(c)}))
	}
	for _, id := range ids {
		if got, want := schemas.ValidID(id), pattern.MatchString(id); got != want {
			t.Errorf("ValidID(%q) is %t, the pattern says %t", id, got, want)
		}
	}
}
