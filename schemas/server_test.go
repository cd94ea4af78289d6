package schemas_test

import (
	"errors"
	"testing"

	"github.com/headroomhq/headroom/schemas"
	"github.com/headroomhq/headroom/schemas/schematest"
)

func TestAServerBelowTheFloorIsRefused(t *testing.T) {
	t.Parallel()
	for version, ok := range map[string]bool{
		"2.9.25": false, "2.10.29": false, "2.11.0": false, "2.12.14": false, "2.12.15": true, "2.12.16": true, "v2.12.15": true,
		"2.12.15-RC.1": false, "2.12.16-RC.1": true, "2.13.0": false, "2.14.0": false, "2.14.4": false, "2.14.5-beta": false, "2.14.5": true,
		"2.14.10": true, "2.15.3": true, "2.15.0-dev": true, "3.0.0": true, "1.99.99": false,
	} {
		err := schemas.CheckServerVersion(version)
		if ok != (err == nil) || err != nil && !errors.Is(err, schemas.ErrServerTooOld) {
			t.Errorf("version %s: %v, want it accepted: %t", version, err, ok)
		}
	}
	for _, version := range []string{"", "2.12", "2.12.x", "latest"} {
		if err := schemas.CheckServerVersion(version); err == nil || errors.Is(err, schemas.ErrServerTooOld) {
			t.Errorf("version %q: %v, want that it is no version", version, err)
		}
	}
}

func TestCheckServerAsksTheConnectedServer(t *testing.T) {
	t.Parallel()
	nc := schematest.NATS(t)
	version, err := schemas.CheckServer(nc)
	if err != nil || version != nc.ConnectedServerVersion() || version == "" {
		t.Errorf("version %q, error %v", version, err)
	}
	nc.Close()
	if _, err := schemas.CheckServer(nc); err == nil {
		t.Error("a closed connection has a version")
	}
}
