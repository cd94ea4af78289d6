package schemas_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headroomhq/headroom/schemas"
)

func TestEncodeWritesTheGoldenEvents(t *testing.T) {
	t.Parallel()
	for _, c := range codecs() {
		for i := range c.samples {
			file := filepath.Join("testdata", c.name+"."+strconv.Itoa(i)+".json")
			t.Run(filepath.Base(file), func(t *testing.T) {
				t.Parallel()
				var indented bytes.Buffer
				if err := json.Indent(&indented, mustEncode(c, i), "", "  "); err != nil {
					t.Fatal(err)
				}
				indented.WriteByte('\n')
				if *update {
					if err := os.WriteFile(file, indented.Bytes(), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(file)
				if err != nil {
					t.Fatalf("%v (go test ./schemas -update writes it)", err)
				}
				if diff := cmp.Diff(string(want), indented.String()); diff != "" {
					t.Fatalf("encoded (-golden +got):\n%s", diff)
				}
				got, err := c.decode("headroom.x."+workspaceOf(want), want)
				if err != nil {
					t.Fatalf("the golden event is refused: %v", err)
				}
				if diff := cmp.Diff(c.samples[i], got, sameLimit); diff != "" {
					t.Errorf("the golden event decodes differently (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestEncodeFillsInWhatTheTypeKnows(t *testing.T) {
	t.Parallel()
	d := denied()
	d.Exhausted = nil
	body, err := schemas.Encode(schemas.Event[schemas.DecisionMade]{ID: "d1", Source: "//headroom", Type: "nonsense", Data: d})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if got["type"] != schemas.TypeDecisionMade || got["specversion"] != "1.0" || got["datacontenttype"] != "application/json" {
		t.Errorf("type %v, specversion %v, datacontenttype %v", got["type"], got["specversion"], got["datacontenttype"])
	}
	if list, ok := got["data"].(map[string]any)["exhausted"].([]any); !ok || len(list) != 0 {
		t.Errorf("exhausted is %v, want an empty list", list)
	}
	if _, there := got["time"]; there {
		t.Error("an event without a time has one in JSON")
	}
}

func TestEncodeWritesTimesInUTCAndLeavesTheCallersAlone(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("odd", 3600+17)
	deadline := at(10, 1).In(zone)
	e := schemas.NewEvent(sampleSource, sampleID, at(10, 0).In(zone), schemas.ExecutionRequested{
		WorkspaceID: "a", ExecutionID: "b", Deadline: &deadline,
	})
	body, err := schemas.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(body, []byte(`"deadline":"2026-11-30T10:01:05.123Z"`)) || !bytes.Contains(body, []byte(`"time":"2026-11-30T10:00:05.123Z"`)) {
		t.Errorf("times are not in UTC: %s", body)
	}
	if deadline.Location() != zone {
		t.Errorf("the caller's deadline was moved to %s", deadline.Location())
	}
}

func TestEncodeRefusesWhatDecodeWould(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		data   schemas.ExecutionRequested
		id     string
		field  string
		reason schemas.Reason
	}{
		"no workspace":       {schemas.ExecutionRequested{ExecutionID: "b"}, "e", "data.workspace_id", schemas.ReasonInvalidField},
		"a dot":              {schemas.ExecutionRequested{WorkspaceID: "a.b", ExecutionID: "b"}, "e", "data.workspace_id", schemas.ReasonInvalidField},
		"no id":              {requested(), "", "id", schemas.ReasonInvalidField},
		"an id not in UTF-8": {requested(), "\xff", "id", schemas.ReasonInvalidField},
		"a negative size":    {schemas.ExecutionRequested{WorkspaceID: "a", ExecutionID: "b", PayloadBytes: new(int64(-1))}, "e", "data.payload_bytes", schemas.ReasonInvalidField},
		"a zero deadline":    {schemas.ExecutionRequested{WorkspaceID: "a", ExecutionID: "b", Deadline: new(time.Time)}, "e", "data.deadline", schemas.ReasonMissingField},
		"a far deadline":     {schemas.ExecutionRequested{WorkspaceID: "a", ExecutionID: "b", Deadline: new(time.Unix(1<<40, 0))}, "e", "data.deadline", schemas.ReasonInvalidField},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := schemas.Encode(schemas.NewEvent(sampleSource, test.id, at(10, 0), test.data))
			var fault *schemas.DecodeError
			if !errors.As(err, &fault) || fault.Reason != test.reason || fault.Field != test.field {
				t.Errorf("error is %v, want %s of %s", err, test.reason, test.field)
			}
		})
	}
}

// The largest decision there can be has to fit, or a workspace with long names
// would get no answer.
func TestTheLargestDecisionFits(t *testing.T) {
	t.Parallel()
	widest := func(n int) string { return strings.Repeat("<", n) } // six bytes each in JSON
	d := denied()
	d.DecisionID, d.RequestEventID, d.RequestEventSource, d.PlanKey = widest(256), widest(256), widest(256), widest(256)
	d.Message = widest(2048)
	d.WorkspaceID, d.ExecutionID = strings.Repeat("w", 128), strings.Repeat("e", 128)
	d.Exhausted = schemas.LimitNames
	e := schemas.NewEvent(widest(256), widest(256), at(10, 0), d)
	e.Subject = widest(2048)
	body, err := schemas.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the largest decision has %d bytes", len(body))
	if _, err := schemas.Decode[schemas.DecisionMade]("headroom.decisions."+d.WorkspaceID, body); err != nil {
		t.Error(err)
	}
}
