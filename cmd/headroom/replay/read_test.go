package replay_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/cmd/headroom/replay"
)

const header = "system,application,execution,executed_at,tasks,makespan_seconds,input_bytes,output_bytes\n"

func TestReadTraceReadsEveryColumnWhateverTheOrder(t *testing.T) {
	t.Parallel()
	want := []replay.Execution{
		{
			Line: 3, System: "kiln", Workspace: "orchard", ID: "first", At: time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC),
			Tasks: 3, Makespan: 1001400 * time.Millisecond, InputBytes: 4, OutputBytes: 5,
		},
		{
			Line: 2, System: "kiln", Workspace: "bakery", ID: "second", At: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC),
			Tasks: 0, Makespan: 0, InputBytes: 0, OutputBytes: 9,
		},
	}
	files := map[string]string{
		"as documented": header +
			"kiln,bakery,second,2026-03-02T09:00:00Z,0,0,0,9\n" +
			"kiln,orchard,first,2026-03-02T08:00:00Z,3,1001.4,4,5\n",
		"columns in another order and one more": "output_bytes,note,input_bytes,makespan_seconds,tasks,executed_at,execution,application,system\n" +
			"9,x,0,0.0,0,2026-03-02T09:00:00Z,second,bakery,kiln\n" +
			"5,,4,1001.4,3,2026-03-02T10:00:00+02:00,first,orchard,kiln\n",
		"byte order mark, carriage returns, blanks, quotes": "\ufeff" + strings.ReplaceAll(header, "\n", "\r\n") +
			"kiln, bakery ,\"second\",2026-03-02T09:00:00Z,0,0,0,9\r\n" +
			"kiln,orchard,first,2026-03-02T08:00:00Z,3,1001.4,4, 5",
	}
	for name, file := range files {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trace, err := replay.ReadTrace("trace.csv", strings.NewReader(file))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, trace.Executions); diff != "" {
				t.Errorf("executions (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"orchard", "bakery"}, trace.Workspaces()); diff != "" {
				t.Errorf("workspaces in order of appearance (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadTraceTellsEveryFaultTogether(t *testing.T) {
	t.Parallel()
	const good = "kiln,bakery,one,2026-03-02T09:00:00Z,1,1,1,1\n"
	tests := map[string]struct {
		file string
		want []string
	}{
		"an empty file":       {"", []string{":1: the file is empty"}},
		"only blanks":         {" \n\n", []string{":1: the file is empty"}},
		"a header and no row": {header, []string{":1: the file has a header but no executions"}},
		"no header": {good, []string{
			":1: 1: the header names", ":1: 1: the header names", ":1: 1: the header names", ":1: system: the header lacks", ":1: application: the header lacks",
			":1: execution: the header lacks", ":1: executed_at: the header lacks", ":1: tasks: the header lacks",
			":1: makespan_seconds: the header lacks", ":1: input_bytes: the header lacks", ":1: output_bytes: the header lacks",
		}},
		"a column missing and one twice": {strings.Replace(header, "tasks", "system", 1) + good, []string{
			":1: system: the header names this column twice", ":1: tasks: the header lacks this column",
		}},
		"every column of a row malformed": {header + "kiln 1,ba.kery,,yesterday,-1,NaN,1.5,lots\n", []string{
			`:2: system: "kiln 1"`, `:2: application: "ba.kery"`, `:2: execution: ""`, `:2: executed_at: "yesterday"`,
			`:2: tasks: "-1"`, `:2: makespan_seconds: "NaN"`, `:2: input_bytes: "1.5"`, `:2: output_bytes: "lots"`,
		}},
		"faults on several rows, good ones between": {header + good + "kiln,bakery,two\n" +
			"kiln,bakery,three,2026-03-02T09:00:00Z,1,-2,1,1\n" + good + "kiln,bak\"ery,four,2026-03-02T09:00:00Z,1,1,1,1\n" +
			"kiln,bakery,five,2026-03-02T09:00:00Z,1,1e300,1,99999999999999999999\n", []string{
			":3: has 3 columns, the header has 8", `:4: makespan_seconds: "-2"`, `:5: execution: "one" of bakery stands on line 2 already`,
			":6: character 9:", `:7: makespan_seconds: "1e300"`, `:7: output_bytes: "99999999999999999999"`,
		}},
		"a quote that is never closed": {header + good + "kiln,\"bakery,two,2026-03-02T09:00:00Z,1,1,1,1\n", []string{":3: character"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := replay.ReadTrace("dir/trace.csv", strings.NewReader(test.file))
			fault, ok := errors.AsType[*replay.TraceError](err)
			if !ok {
				t.Fatalf("got %v, want a *TraceError", err)
			}
			lines := strings.Split(fault.Error(), "\n")[1:]
			if len(lines) != len(test.want) || len(fault.Faults) != len(test.want) {
				t.Fatalf("got %d faults, want %d:\n%v", len(fault.Faults), len(test.want), err)
			}
			for i, want := range test.want {
				if !strings.HasPrefix(lines[i], "  dir/trace.csv"+want) {
					t.Errorf("fault %d is %q, want it to begin with %q", i+1, lines[i], "  dir/trace.csv"+want)
				}
			}
		})
	}
}

func TestReadTraceOfAHopelessFileStaysShort(t *testing.T) {
	t.Parallel()
	file := header + strings.Repeat("a,b\n", 1000)
	_, err := replay.ReadTrace("trace.csv", strings.NewReader(file))
	fault, ok := errors.AsType[*replay.TraceError](err)
	if !ok || len(fault.Faults) != 1000 {
		t.Fatalf("got %v, want a *TraceError of 1000 faults", err)
	}
	if text := fault.Error(); strings.Count(text, "\n") != 41 || !strings.HasSuffix(text, "and 960 more") {
		t.Errorf("message is not cut after forty faults:\n%s", text)
	}
}

func TestReadTracePassesOnAnErrorOfTheFile(t *testing.T) {
	t.Parallel()
	if _, err := replay.ReadTrace("trace.csv", iotest.ErrReader(io.ErrClosedPipe)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v, want it to wrap the reader's error", err)
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add([]byte(header + "kiln,bakery,one,2026-03-02T09:00:00Z,1,1.5,1,1\n"))
	f.Add([]byte(header + "\"\n,,,,,,,\n"))
	f.Add([]byte("\ufeffsystem\n\x00"))
	f.Fuzz(func(t *testing.T, body []byte) {
		trace, err := replay.ReadTrace("trace.csv", bytes.NewReader(body))
		if err != nil {
			if fault, ok := errors.AsType[*replay.TraceError](err); !ok || len(fault.Faults) == 0 {
				t.Fatalf("got %v, want a *TraceError with faults", err)
			}
			return
		}
		for i, e := range trace.Executions {
			if e.Workspace == "" || e.ID == "" || e.Makespan < 0 || e.Tasks < 0 || e.InputBytes < 0 || e.OutputBytes < 0 {
				t.Fatalf("execution %d is impossible: %+v", i, e)
			}
			if i > 0 && e.At.Before(trace.Executions[i-1].At) {
				t.Fatalf("execution %d is before the one ahead of it: %+v", i, e)
			}
		}
	})
}

func ExampleDealPlans() {
	dealt := replay.DealPlans([]string{"bakery", "tidepool", "orchard"}, []string{"free", "pro"})
	fmt.Println(dealt["bakery"], dealt["tidepool"], dealt["orchard"])
	// Output: free pro free
}
