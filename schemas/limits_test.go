package schemas_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/headroomhq/headroom/schemas"
)

func TestALimitReadsWhatItWrites(t *testing.T) {
	t.Parallel()
	for limit, want := range map[schemas.Limit]string{
		schemas.LimitOf(0):             `{"value":0,"unlimited":false}`,
		schemas.LimitOf(-1):            `{"value":0,"unlimited":false}`,
		schemas.LimitOf(100):           `{"value":100,"unlimited":false}`,
		schemas.LimitOf(math.MaxInt64): `{"value":9223372036854775807,"unlimited":false}`,
		schemas.Unlimited:              `{"value":null,"unlimited":true}`,
	} {
		body, err := json.Marshal(limit)
		if err != nil || string(body) != want {
			t.Errorf("%s is written as %s (%v), want %s", limit, body, err, want)
		}
		var back schemas.Limit
		if err := json.Unmarshal(body, &back); err != nil || back != limit {
			t.Errorf("%s is read as %s (%v)", body, back, err)
		}
	}
}

func TestALimitRefusesWhatIsNotOne(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{}`, `null`, `5`, `"5"`, `[]`, `{"value":null}`, `{"value":null,"unlimited":false}`, `{"value":1,"unlimited":true}`,
		`{"value":-1,"unlimited":false}`, `{"value":1.5}`, `{"value":"1"}`, `{"VALUE":1}`, `{"value":1,"value":2}`, `{"value":9223372036854775808}`,
	} {
		limit := schemas.LimitOf(7)
		if err := limit.UnmarshalJSON([]byte(body)); err == nil {
			t.Errorf("%s is read as %s, want an error", body, limit)
		}
	}
	var limit schemas.Limit
	if err := limit.UnmarshalJSON([]byte(`{"value":`)); err == nil {
		t.Error("half a limit is read")
	}
}

func TestLimitsAreWrittenInTheOrderOfTheirNames(t *testing.T) {
	t.Parallel()
	want := sampleLimits()
	body, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got schemas.Limits
	if err := json.Unmarshal(body, &got); err != nil || got != want {
		t.Errorf("%s is read as %v (%v), want %v", body, got, err, want)
	}
	for i, field := range parse(body) {
		if field.name != schemas.LimitNames[i] {
			t.Errorf("limit %d is written as %s, want %s", i, field.name, schemas.LimitNames[i])
		}
	}
	if want.Named("max_nonsense") != nil {
		t.Error("a limit of an unknown name is there")
	}
}

func TestALimitIsExceededOnlyAboveItsNumber(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		limit schemas.Limit
		used  int64
		want  bool
	}{
		{schemas.LimitOf(0), 0, false},
		{schemas.LimitOf(0), 1, true},
		{schemas.LimitOf(5), 5, false},
		{schemas.LimitOf(5), 6, true},
		{schemas.Unlimited, math.MaxInt64, false},
		{schemas.Limit{}, 1, true},
	} {
		if got := test.limit.Exceeded(test.used); got != test.want {
			t.Errorf("%s exceeded by %d is %t, want %t", test.limit, test.used, got, test.want)
		}
	}
	if n := schemas.Unlimited.Pointer(); n != nil || !schemas.LimitFrom(nil).IsUnlimited() {
		t.Errorf("unlimited and nil are not the same: %v", n)
	}
	if n, bounded := schemas.LimitFrom(new(int64(3))).Value(); n != 3 || !bounded {
		t.Errorf("a limit of 3 is %d, bounded %t", n, bounded)
	}
}
