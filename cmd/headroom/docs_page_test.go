package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// block is a fenced block of a page.
type block struct {
	line       int
	kind, text string
}

// blocksOf are the fenced blocks of a page, in order.
func blocksOf(t testing.TB, page string) []block {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	inside := false
	for n, line := range strings.Split(string(text), "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && !inside:
			blocks, inside = append(blocks, block{line: n + 1, kind: fence}), true
		case isFence:
			inside = false
		case inside:
			blocks[len(blocks)-1].text += line + "\n"
		}
	}
	return blocks
}

// elided is the member, or the element, for what a page leaves out.
const elided = "…"

// readShown reads JSON of a page: … in an object stands for members that are left out, and
// at the end of a list for elements.
func readShown(text string) (any, error) {
	var plain strings.Builder
	var within []rune
	quoted, escaped := false, false
	for _, r := range text {
		switch {
		case quoted:
			quoted, escaped = escaped || r != '"', r == '\\' && !escaped
		case r == '"':
			quoted = true
		case r == '{' || r == '[':
			within = append(within, r)
		case r == '}' || r == ']':
			within = within[:max(len(within)-1, 0)]
		case r == '…' && len(within) > 0 && within[len(within)-1] == '{':
			plain.WriteString(`"…": "…"`)
			continue
		case r == '…':
			plain.WriteString(`"…"`)
			continue
		}
		plain.WriteRune(r)
	}
	var value any
	decoder := json.NewDecoder(strings.NewReader(plain.String()))
	decoder.UseNumber()
	err := decoder.Decode(&value)
	return value, err
}

// What is another each time, in texts and in header fields. What is shown must have the
// same shape.
var volatile = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<id>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d(:|%3A)\d\d(:|%3A)\d\d(\.\d+)?Z`), "<instant>"},
	{regexp.MustCompile(`;t=\d+`), ";t=<seconds>"},
	{regexp.MustCompile(`(?i)^(retry-after): \d+$`), "$1: <seconds>"},
}

func steady(text string) string {
	for _, v := range volatile {
		text = v.pattern.ReplaceAllString(text, v.name)
	}
	return text
}

// differences lists where a value is not what a page shows.
func differences(path string, shown, got any) []string {
	differ := func() []string { return []string{fmt.Sprintf("%s is %v, shown is %v", path, got, shown)} }
	if reflect.TypeOf(shown) != reflect.TypeOf(got) {
		return differ()
	}
	switch shown := shown.(type) {
	case map[string]any:
		return memberDifferences(path, shown, got.(map[string]any))
	case []any:
		got, whole := got.([]any), true
		if n := len(shown); n > 0 && shown[n-1] == elided {
			shown, whole = shown[:n-1], false
		}
		if len(shown) > len(got) || whole && len(shown) < len(got) {
			return differ()
		}
		var all []string
		for i := range shown {
			all = append(all, differences(fmt.Sprintf("%s[%d]", path, i), shown[i], got[i])...)
		}
		return all
	case string:
		if steady(shown) != steady(got.(string)) {
			return differ()
		}
	default:
		if shown != got && !strings.HasSuffix(path, ".retry_after_ms") {
			return differ()
		}
	}
	return nil
}

func memberDifferences(path string, shown, got map[string]any) []string {
	var all []string
	for name, value := range shown {
		if there, is := got[name]; is {
			all = append(all, differences(path+"."+name, value, there)...)
		} else if name != elided {
			all = append(all, path+"."+name+" is not there")
		}
	}
	for name := range got {
		_, is := shown[name]
		if _, rest := shown[elided]; !is && !rest {
			all = append(all, path+"."+name+" is not shown")
		}
	}
	return all
}

func TestWhatAPageShowsIsHeldAgainstTheAnswer(t *testing.T) {
	t.Parallel()
	const answer = `{"id": "01a22e97-6280-7e39-a6d9-aba7cf640e40", "at": "2026-12-01T00:00:00.5Z", "n": 1, "list": [1, 2], "none": null}`
	for shown, same := range map[string]bool{
		answer: true,
		`{"id": "11a22e97-6280-7e39-a6d9-aba7cf640e41", "at": "2027-12-01T00:00:00Z", …}`: true,
		`{"list": [1, …], …}`:              true,
		`{"list": [1, 2, …], …}`:           true,
		`{…}`:                              true,
		`{"n": 1}`:                         false,
		`{"n": 2, …}`:                      false,
		`{"n": "1", …}`:                    false,
		`{"other": 1, …}`:                  false,
		`{"list": [1], …}`:                 false,
		`{"list": [2, …], …}`:              false,
		`{"list": [1, 2, 3, …], …}`:        false,
		`{"at": "2026-12-01", …}`:          false,
		`{"none": 0, …}`:                   false,
		`{"id": "a \"quoted … text", …}`:   false,
		`[{"n": 1, …}]`:                    false,
		`{"id": "not an id at all", …}`:    false,
		`{"none": null, "n": 1.0, …}`:      false,
		`{"at": "1970-01-01T00:00:00Z",…}`: true,
	} {
		want, err := readShown(shown)
		if err != nil {
			t.Errorf("%s: %v", shown, err)
			continue
		}
		got, err := readShown(answer)
		if err != nil {
			t.Fatal(err)
		}
		if found := differences("body", want, got); (len(found) == 0) != same {
			t.Errorf("%s differs in %q", shown, found)
		}
	}
}
