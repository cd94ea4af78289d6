package api_test

import (
	"strings"
	"testing"

	"github.com/headroomhq/headroom/enforcement/api"
	"github.com/headroomhq/headroom/enforcement/problems"
)

// twiceBelow is a body that nests so deep and then says one name as often as has room.
func twiceBelow(depth int) string {
	const each = `"a":1,`
	left := api.MaxBody - 2*depth - len(`{"a":1}`)
	return strings.Repeat("[", depth) + "{" + strings.Repeat(each, left/len(each)) + `"a":1}` + strings.Repeat("]", depth)
}

func TestAWrongBodyHasNoAnswerThatIsManyTimesAsLong(t *testing.T) {
	t.Parallel()
	door := newDoor(t, willing())
	for name, c := range map[string]struct{ body, slug string }{
		"deep and twice":      {twiceBelow(5000), "malformed-body"},
		"too deep by one":     {twiceBelow(16), "malformed-body"},
		"as deep as allowed":  {twiceBelow(15), "invalid-request"},
		"nothing but depth":   {strings.Repeat("[", 9999) + strings.Repeat("]", 9999), "malformed-body"},
		"many unknown fields": {`{"x":1` + unknownFields(8000) + `}`, "invalid-request"},
	} {
		q := good["admit"].request
		q.body = c.body
		w := q.ask(t, door)
		if slug := slugOf(told(t, w)); slug != c.slug || w.Body.Len() > api.MaxBody {
			t.Errorf("%s: %s in %d bytes, want %s", name, slug, w.Body.Len(), c.slug)
		}
	}
}

// unknownFields are members that no request has.
func unknownFields(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`,"` + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676)) + `":1`)
	}
	return b.String()
}

func TestAWrongBodyIsAnsweredOverNATSHoweverWrong(t *testing.T) {
	t.Parallel()
	h := newHouse(t, limits(nil, nil))
	h.serve()
	h.eventually("it listens", func() bool { return len(h.instances()) == 1 })
	got := h.request("admit", twiceBelow(5000))
	if p := read[problems.Problem](t, got); got.code != "400" || p.Slug() != problems.Malformed {
		t.Errorf("code %s, problem %s", got.code, p.Slug())
	}
}
