package main

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/headroomhq/headroom/schemas/schematest"
)

const apiNATSDocs = "../../docs/api-nats.md"

// TestTheRequestsOfTheNATSPageAnswerAsShown asks what docs/api-nats.md has the nats command
// ask. The command itself is not needed: it does no more than this.
func TestTheRequestsOfTheNATSPageAnswerAsShown(t *testing.T) {
	t.Parallel()
	i := newInstallation(t).guarded()
	i.must("plans", "apply", demoCatalog)
	s := i.serve()
	s.awaitStatus(http.StatusOK)
	nc := schematest.NATS(t)
	examples := examplesOf(t, apiNATSDocs)
	if len(examples) < 4 {
		t.Errorf("the page has %d examples", len(examples))
	}
	command := regexp.MustCompile(`^nats request --raw (?:-H '([\w-]+): ([^']+)' )?(\S+) '([^']+)'\n$`)
	for _, e := range examples {
		words := command.FindStringSubmatch(e.commands.text)
		if words == nil {
			t.Errorf("%s:%d: this is no request: %s", apiNATSDocs, e.commands.line, e.commands.text)
			continue
		}
		m := &nats.Msg{Subject: words[3], Data: []byte(words[4]), Header: nats.Header{}}
		if words[1] != "" {
			m.Header.Set(words[1], words[2])
		}
		answer, err := nc.RequestMsg(m, patience)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range e.differences(string(answer.Data)) {
			t.Errorf("%s:%d: %s in %s", apiNATSDocs, e.commands.line, found, answer.Data)
		}
	}
	if err := s.end(); err != nil {
		t.Error(err)
	}
}

func TestTheNATSPageNamesEachSubject(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(apiNATSDocs)
	if err != nil {
		t.Fatal(err)
	}
	i := newInstallation(t)
	i.must("plans", "apply", demoCatalog)
	i.serve().awaitStatus(http.StatusOK)
	var info micro.Info
	eventually(t, "the micro-service tells of itself", func() bool {
		answer, err := schematest.NATS(t).Request("$SRV.INFO.headroom", nil, patience)
		return err == nil && json.Unmarshal(answer.Data, &info) == nil && len(info.Endpoints) >= 7
	})
	for _, endpoint := range info.Endpoints {
		if !strings.Contains(string(page), "| `"+endpoint.Subject+"` |") {
			t.Errorf("%s does not name %s", apiNATSDocs, endpoint.Subject)
		}
	}
}
