package main

import (
	"strings"
	"testing"
)

func TestARecountTellsOfAWorkspaceThatNobodyKnows(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("migrate")
	i.must("plans", "apply", demoCatalog)
	i.must("workspaces", "assign", "ws", "--plan", "pro")
	var view recountView
	i.mustJSON(&view, "workspaces", "recount", "ws")
	if view.WorkspaceID != "ws" || view.UsageEpoch == "" || view.Known || view.Drift != (driftView{}) || view.Ledger.Used != 0 {
		t.Errorf("%+v, want a workspace that Redis did not know", view)
	}
	var again recountView
	i.mustJSON(&again, "workspaces", "recount", "ws")
	if !again.Known || again.Drift != (driftView{}) {
		t.Errorf("%+v, want one that Redis knows, without a drift", again)
	}
	if text := i.must("workspaces", "recount", "ws"); !strings.Contains(text, "drift of used") {
		t.Errorf("the text tells no drift: %q", text)
	}
}
