package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/headroomhq/headroom/schemas"
)

func TestWhatIsWrongWithStreamsIsFound(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	found, _ := i.examined()
	wantStatuses(t, found, map[string]string{"nats.streams": statusFail, "clocks.nats": statusOK})

	i.must("migrate")
	js, topology := i.jetStream(), schemas.Topology{}
	decisions, err := js.Stream(t.Context(), topology.Stream(schemas.StreamDecisions))
	if err != nil {
		t.Fatal(err)
	}
	narrow := decisions.CachedInfo().Config
	narrow.MaxMsgs = 1000
	if _, err := js.UpdateStream(t.Context(), narrow); err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteConsumer(t.Context(), topology.Stream(schemas.StreamExecutions), schemas.ConsumerCompleted); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), topology.DeadLetter("executions", "requested"), []byte("poison")); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), topology.Requested("ws"), []byte("{}")); err != nil {
		t.Fatal(err)
	}
	found, err = i.with(map[string]string{"HEADROOM_NATS_REPLICAS": "2"}).examined()
	if exitCode(err) != exitFailed {
		t.Errorf("the exit code is %d (%v)", exitCode(err), err)
	}
	wantStatuses(t, found, map[string]string{
		"nats.streams": statusFail, "nats.settings": statusFail, "nats.deadletters": statusWarn, "nats.replicas": statusWarn,
	})
	if what := found["nats.settings"].What; !strings.Contains(what, "max messages is 1000") {
		t.Errorf("nats.settings says %q", what)
	}
	if what := found["nats.streams"].What; what != "missing: HEADROOM_EXECUTIONS/completed" {
		t.Errorf("nats.streams says %q", what)
	}
	if what := found["nats.lag"].What; !strings.Contains(what, "HEADROOM_EXECUTIONS/requested: the oldest event waits for") || !strings.Contains(what, "nobody consumes") {
		t.Errorf("nats.lag says %q", what)
	}
}

func TestAConsumerOfAnEarlierVersionIsToBeLookedAt(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("migrate")
	stream := schemas.Topology{}.Stream(schemas.StreamExecutions)
	consumer, err := i.jetStream().Consumer(t.Context(), stream, schemas.ConsumerRequested)
	if err != nil {
		t.Fatal(err)
	}
	old := consumer.CachedInfo().Config
	old.MaxDeliver = 5
	if _, err := i.jetStream().UpdateConsumer(t.Context(), stream, old); err != nil {
		t.Fatal(err)
	}
	found, _ := i.examined()
	wantStatuses(t, found, map[string]string{"nats.streams": statusWarn, "nats.settings": statusOK})
}

// startNATS runs a server with a configuration of the test's own.
func startNATS(t *testing.T, configuration string) *server.Server {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(path, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	options, err := server.ProcessConfigFile(path)
	if err != nil {
		t.Fatal(err)
	}
	options.NoSigs, options.StoreDir = true, t.TempDir()
	running, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	running.Start()
	t.Cleanup(func() {
		running.Shutdown()
		running.WaitForShutdown()
	})
	if !running.ReadyForConnections(patience) {
		t.Fatal("the NATS server does not take connections")
	}
	return running
}

func TestWithoutJetStreamTheDoctorSaysSo(t *testing.T) {
	t.Parallel()
	running := startNATS(t, `listen: "127.0.0.1:-1"
		max_payload: 32KB`)
	found, _ := newInstallation(t).with(map[string]string{"HEADROOM_NATS_URL": running.ClientURL()}).examined()
	wantStatuses(t, found, map[string]string{"nats.reachable": statusOK, "nats.jetstream": statusFail, "nats.payload": statusFail})
}

// What the system account may ask is known where that account lets another ask it.
func TestTheSyncOfAServerIsJudgedWhereItIsTold(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		settings, exports string
		status, says      string
	}{
		"told, late":   {"", systemExport, statusWarn, "syncs to the disk every 2m0s"},
		"told, always": {"sync_interval: always", systemExport, statusOK, "before it acknowledges"},
		"not told":     {"", "", statusOK, "not told to this account"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			imports := ""
			if test.exports != "" {
				imports = `, imports: [{service: {account: SYS, subject: "$SYS.REQ.SERVER.*.VARZ"}}]`
			}
			running := startNATS(t, `listen: "127.0.0.1:-1"
				jetstream {`+test.settings+`}
				system_account: SYS
				accounts {
					SYS: {users: [{user: system, password: system}]`+test.exports+`}
					APP: {jetstream: enabled, users: [{user: app, password: app}]`+imports+`}
				}`)
			i := newInstallation(t).with(map[string]string{"HEADROOM_NATS_URL": strings.Replace(running.ClientURL(), "nats://", "nats://app:app@", 1)})
			found, _ := i.examined()
			if f := found["nats.sync"]; f.Status != test.status || !strings.Contains(f.What, test.says) || (f.Remedy == "") != (name == "told, always") {
				t.Errorf("nats.sync is %+v", f)
			}
		})
	}
}

const systemExport = `, exports: [{service: "$SYS.REQ.SERVER.*.VARZ", accounts: [APP]}]`

func TestStorageNearItsLimitIsFound(t *testing.T) {
	t.Parallel()
	running := startNATS(t, `listen: "127.0.0.1:-1"
		jetstream {}
		accounts {
			APP: {jetstream: {max_file: 100KB}, users: [{user: app, password: app}]}
		}
		no_auth_user: app`)
	i := newInstallation(t).with(map[string]string{"HEADROOM_NATS_URL": running.ClientURL()})
	i.must("migrate")
	nc, js, err := dialNATS(Config{NATSURL: NewSecret(running.ClientURL())}, natsDialTimeout)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for {
		account, err := js.AccountInfo(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if account.Store > 82<<10 {
			break
		}
		if _, err := js.Publish(t.Context(), schemas.Topology{}.Requested("ws"), make([]byte, 4<<10)); err != nil {
			t.Fatal(err)
		}
	}
	found, _ := i.examined()
	wantStatuses(t, found, map[string]string{"nats.storage": statusWarn})
}
