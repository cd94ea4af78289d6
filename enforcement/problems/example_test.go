package problems_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headroomhq/headroom/enforcement/problems"
	"github.com/headroomhq/headroom/enforcement/usage"
)

// refuse tells a customer why something was not done, and the log what a customer must not see.
func refuse(w http.ResponseWriter, err error, log *slog.Logger) {
	p := problems.Of(err, "").Occurred()
	if p.Status >= http.StatusInternalServerError {
		log.Error("request failed", "instance", p.Instance, "error", err)
	}
	p.Write(w, time.Now())
}

func ExampleOf() {
	w := httptest.NewRecorder()
	refuse(w, fmt.Errorf("create project: %w", &usage.QuotaExceeded{
		Feature: "projects", PlanKey: "free", Used: 5, Limit: 5, Requested: 1,
	}), slog.New(slog.DiscardHandler))
	fmt.Println(w.Code, w.Header().Get("RateLimit"))
	// Output: 429 "projects";r=0
}

// What docs/problems.md shows compiles: it is in this file.
func TestTheDocumentShowsTheExample(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/problems.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(page), "```go\n")
	code, _, _ := strings.Cut(shown, "```")
	if code == "" || !strings.Contains(string(source), code) {
		t.Errorf("not in example_test.go:\n%s", code)
	}
}
