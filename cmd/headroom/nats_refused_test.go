package main

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

func TestServeSaysWhyNATSDoesNotLetItInAndComesInWhenItDoes(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.must("plans", "apply", demoCatalog)
	guarded, options := guardedNATS(t)
	address := url.URL{Scheme: "nats", User: url.UserPassword(options.Username, password), Host: guarded.Addr().String()}
	s := i.with(map[string]string{"HEADROOM_NATS_URL": address.String()}).serve()

	s.log.awaitTimes(t, "service is not ready yet", 4) // the client library gives up after two such answers, unless told not to
	_, body := s.readiness()
	first, _ := s.log.await(t, "service is not ready yet")["error"].(string)
	for place, told := range map[string]string{"the log": first, "/readyz": body.Checks["nats"].Error} {
		for _, want := range []string{"authorization violation", "nats://***@" + address.Host} {
			if !strings.Contains(strings.ToLower(told), want) {
				t.Errorf("%s says %q, want %q in it", place, told, want)
			}
		}
	}
	if strings.Contains(s.log.String()+body.Checks["nats"].Error, password) {
		t.Errorf("the password is shown:\n%s", s.log)
	}

	options.Password = password
	if err := guarded.ReloadOptions(options); err != nil {
		t.Fatal(err)
	}
	s.awaitStatus(http.StatusOK)
}

// guardedNATS is a server that lets in with another password than the tests'.
// The options are for a reload.
func guardedNATS(t *testing.T) (*server.Server, *server.Options) {
	t.Helper()
	options := &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(),
		Username: "headroom", Password: "another", NoLog: true, NoSigs: true,
	}
	guarded, err := server.NewServer(options.Clone())
	if err != nil {
		t.Fatal(err)
	}
	guarded.Start()
	t.Cleanup(func() {
		guarded.Shutdown()
		guarded.WaitForShutdown()
	})
	if !guarded.ReadyForConnections(10 * time.Second) {
		t.Fatal("the NATS server does not start")
	}
	return guarded, options
}
