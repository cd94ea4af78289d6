package guard_test

import (
	"os"
	"strings"
	"testing"
)

// What docs/guard.md shows compiles: it is in example_test.go.
func TestTheDocumentShowsTheExamples(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/guard.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	shown := strings.Split(string(page), "```go\n")[1:]
	if len(shown) == 0 {
		t.Error("the page shows no code")
	}
	for _, block := range shown {
		code, _, _ := strings.Cut(block, "```")
		if !strings.Contains(string(examples), code) {
			t.Errorf("not in example_test.go:\n%s", code)
		}
	}
}
