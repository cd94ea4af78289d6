package main

import (
	"context"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headroomhq/headroom/cmd/headroom/devstack"
	"github.com/headroomhq/headroom/schemas/schematest"
)

// guarded are the three services with one certificate, or without any, and their
// addresses as they are written for TLS.
type guarded struct {
	nats, redis, postgres string
	database              *devstack.Postgres
}

func guardedBy(t *testing.T, c devstack.Certificate) guarded {
	t.Helper()
	database := schematest.TLSPostgresServer(t, c)
	g := guarded{
		nats: schematest.TLSNATSServer(t, c).URL(), redis: schematest.TLSRedisServer(t, c).URL(),
		postgres: database.URL(), database: database,
	}
	// The addresses of servers without a certificate say so.
	g.nats = strings.Replace(g.nats, "nats://", "tls://", 1)
	g.redis = strings.Replace(g.redis, "redis://", "rediss://", 1)
	g.postgres = strings.Replace(g.postgres, "sslmode=disable", "sslmode=verify-full", 1)
	return g
}

// at is the same services by another name of this machine.
func (g guarded) at(host string) guarded {
	for _, address := range []*string{&g.nats, &g.redis, &g.postgres} {
		*address = strings.Replace(*address, "127.0.0.1", host, 1)
	}
	return g
}

// settings name the services, and who signed their certificates.
func (g guarded) settings(authority *schematest.Authority) []string {
	return []string{
		"HEADROOM_NATS_URL=" + g.nats, "HEADROOM_REDIS_URL=" + g.redis, "HEADROOM_POSTGRES_URL=" + g.postgres,
		"SSL_CERT_FILE=" + authority.File(),
	}
}

// SSL_CERT_FILE is read once in a process, so that these tests start some.

func TestServeWorksOverTLSWithAllThreeServices(t *testing.T) {
	t.Parallel()
	authority := schematest.NewAuthority(t)
	g := guardedBy(t, authority.Issue(schematest.CertificateOptions{}))
	settings := g.settings(authority)
	for _, args := range [][]string{{"migrate"}, {"plans", "apply", demoCatalog}} {
		cmd := headroomCommand(t.Context(), t, args...)
		cmd.Env = append(cmd.Env, settings...)
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("headroom %v: %v\n%s", args, err, output)
		}
	}
	p := startServe(t, settings...)
	awaitReady(t, p.addr, p.log)

	nc, err := nats.Connect(g.nats, nats.RootCAs(authority.File()))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	i := &installation{t: t}
	if d := i.decide(js, "ws", "e1"); !d.Allowed {
		t.Errorf("the decision is %+v, want an allowed one", d)
	}
	if plain := g.plainSessions(t); plain != 0 {
		t.Errorf("%d sessions of PostgreSQL are not encrypted", plain)
	}
	p.signal(syscall.SIGTERM)
	if status := p.status(); status != exitDone {
		t.Errorf("status %d, want %d:\n%s", status, exitDone, p.log)
	}
}

// plainSessions counts those that Headroom holds without TLS.
func (g guarded) plainSessions(t *testing.T) int {
	t.Helper()
	session, err := pgx.Connect(t.Context(), strings.Replace(g.postgres, "verify-full", "disable", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close(t.Context()) }()
	var all, plain int
	const query = `SELECT count(*), count(*) FILTER (WHERE NOT s.ssl)
		FROM pg_stat_activity a JOIN pg_stat_ssl s USING (pid) WHERE a.application_name = 'headroom'`
	if err := session.QueryRow(t.Context(), query).Scan(&all, &plain); err != nil {
		t.Fatal(err)
	}
	if all == 0 {
		t.Error("Headroom holds no session of PostgreSQL, so nothing was shown")
	}
	return plain
}

func TestAServiceThatCannotProveItselfIsRefused(t *testing.T) {
	t.Parallel()
	authority, stranger := schematest.NewAuthority(t), schematest.NewAuthority(t)
	good := guardedBy(t, authority.Issue(schematest.CertificateOptions{}))
	for name, test := range map[string]struct {
		services guarded
		trust    *schematest.Authority
		says     map[string]string
	}{
		"signed by another": {good, stranger, everyService("certificate signed by unknown authority")},
		"of another name":   {good.at("localhost"), authority, everyService("certificate is not valid for any names, but wanted to match localhost")},
		"expired": {
			guardedBy(t, authority.Issue(schematest.CertificateOptions{Expired: true})), authority,
			everyService("certificate has expired"),
		},
		"without TLS": {guardedBy(t, devstack.Certificate{}), authority, map[string]string{
			"nats": "secure connection not available", "redis": "nothing answered in TLS there", "postgres": "refused TLS",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startServe(t, test.services.settings(test.trust)...)
			s := &serving{t: t, addr: p.addr, log: p.log}
			for service, want := range test.says {
				schematest.Eventually(t, service+" says "+want, func() bool {
					_, body := s.readiness()
					c := body.Checks[service]
					return !c.OK && strings.Contains(c.Error, want)
				})
			}
			p.signal(syscall.SIGTERM)
			if status := p.status(); status != exitDone {
				t.Errorf("status %d, want %d", status, exitDone)
			}
			if hasLine(p.log.String(), "nats connected") {
				t.Error("NATS was connected to")
			}
		})
	}
}

func everyService(says string) map[string]string {
	return map[string]string{"nats": says, "redis": says, "postgres": says}
}

func TestNATSIsShownAClientCertificate(t *testing.T) {
	t.Parallel()
	authority := schematest.NewAuthority(t)
	c := authority.Issue(schematest.CertificateOptions{})
	c.Clients = authority.PEM()
	address := schematest.TLSNATSServer(t, c).URL()
	chain, key := authority.Files(authority.Issue(schematest.CertificateOptions{Names: []string{"headroom"}}))
	settings := []string{
		"HEADROOM_NATS_URL=" + address, "SSL_CERT_FILE=" + authority.File(),
		"HEADROOM_REDIS_URL=" + schematest.RedisURL(t), "HEADROOM_POSTGRES_URL=" + schematest.PostgresURL(t),
	}
	for name, test := range map[string]struct {
		more []string
		want int
	}{
		"with it":    {[]string{"HEADROOM_NATS_CERT=" + chain, "HEADROOM_NATS_KEY=" + key}, exitDone},
		"without it": {nil, exitFailed},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		cmd := headroomCommand(ctx, t, "migrate")
		cmd.Env = append(append(cmd.Env, settings...), test.more...)
		output, err := cmd.CombinedOutput()
		cancel()
		if status := statusOf(err); status != test.want {
			t.Errorf("%s: status %d, want %d:\n%s", name, status, test.want, output)
		}
		// What of the server's refusal comes first is a matter of luck.
		said := strings.Contains(string(output), "tls error") || strings.Contains(string(output), "certificate required")
		if test.want == exitFailed && !said {
			t.Errorf("%s: the output does not say what is missing:\n%s", name, output)
		}
	}
}

func TestAClientCertificateIsNeverGivenUpForAPlainConnection(t *testing.T) {
	t.Parallel()
	authority := schematest.NewAuthority(t)
	chain, key := authority.Files(authority.Issue(schematest.CertificateOptions{}))
	config := Config{NATSURL: NewSecret(schematest.NATSURL(t)), NATSCert: chain, NATSKey: key}
	nc, _, err := dialNATS(config, time.Second)
	if err == nil {
		nc.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "secure connection not available") {
		t.Errorf("a server without TLS: %v", err)
	}
}

func TestAClientCertificateIsCheckedAtTheStart(t *testing.T) {
	t.Parallel()
	authority := schematest.NewAuthority(t)
	chain, key := authority.Files(authority.Issue(schematest.CertificateOptions{}))
	other, _ := schematest.NewAuthority(t).Files(schematest.NewAuthority(t).Issue(schematest.CertificateOptions{}))
	for name, test := range map[string]struct {
		cert, key string
		want      string
	}{
		"no key":       {chain, "", "one without the other"},
		"no cert":      {"", key, "one without the other"},
		"another's":    {other, key, "HEADROOM_NATS_CERT: no certificate that HEADROOM_NATS_KEY belongs to"},
		"no such file": {chain, "/nowhere/key", "HEADROOM_NATS_KEY: read the file"},
	} {
		i := &installation{t: t, settings: map[string]string{"HEADROOM_NATS_CERT": test.cert, "HEADROOM_NATS_KEY": test.key}}
		_, stderr, err := i.run("migrate")
		if err == nil || exitCode(err) != exitUsage || !strings.Contains(err.Error()+stderr, test.want) {
			t.Errorf("%s: %v, want it to say %q", name, err, test.want)
		}
	}
}

// awaitReady asks a process until all its services are there.
func awaitReady(t *testing.T, addr string, log *lines) {
	t.Helper()
	(&serving{t: t, addr: addr, log: log}).awaitStatus(http.StatusOK)
}
