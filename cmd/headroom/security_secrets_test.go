package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/headroomhq/headroom/schemas/schematest"
)

// canaries are the secrets of an installation, each with a text that must be seen nowhere.
type canaries map[string]string

// settings hold every setting that is a secret, and files that hold one.
func (c canaries) settings(t *testing.T) map[string]string {
	t.Helper()
	creds := filepath.Join(t.TempDir(), "creds")
	text := "-----BEGIN NATS USER JWT-----\n" + c["creds"] + "\n------END NATS USER JWT------\n\n" +
		"-----BEGIN USER NKEY SEED-----\n" + c["creds"] + "\n------END USER NKEY SEED------\n"
	if err := os.WriteFile(creds, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"HEADROOM_API_TOKENS":             "reader:" + c["token"] + ":read",
		"HEADROOM_STRIPE_WEBHOOK_SECRETS": "whsec_" + c["webhook"],
		"HEADROOM_STRIPE_API_KEY":         "rk_live_" + c["stripe"],
		"HEADROOM_STRIPE_API_URL":         "http://127.0.0.1:1",
		"HEADROOM_NATS_CREDS":             creds,
		"HEADROOM_LOG_LEVEL":              "debug", "HEADROOM_LOG_FORMAT": "json", "HEADROOM_HTTP_ADDR": "127.0.0.1:0",
	}
}

func newCanaries() canaries {
	c := canaries{}
	for _, secret := range []string{"token", "webhook", "stripe", "creds", "nats", "redis", "postgres"} {
		c[secret] = "canary0" + secret + "0canary"
	}
	return c
}

// absent fails the test for each secret, or piece of one, that the text shows.
func (c canaries) absent(t *testing.T, place, text string) {
	t.Helper()
	if strings.Contains(text, "canary") || strings.Contains(text, "devstack-secret-") {
		t.Errorf("%s shows a secret", place)
	}
}

// wrongPassword is an address with a canary where the password is.
func wrongPassword(t *testing.T, address, canary string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(u.User.Username(), canary)
	return u.String()
}

// troubles are what may be wrong with the three services.
func (c canaries) troubles(t *testing.T) map[string]map[string]string {
	t.Helper()
	named := func(nats, redis, postgres string) map[string]string {
		return map[string]string{"HEADROOM_NATS_URL": nats, "HEADROOM_REDIS_URL": redis, "HEADROOM_POSTGRES_URL": postgres}
	}
	at := func(host string) map[string]string {
		return named("nats://u:"+c["nats"]+"@"+host, "redis://u:"+c["redis"]+"@"+host+"/0", "postgres://u:"+c["postgres"]+"@"+host+"/db")
	}
	return map[string]map[string]string{
		"a wrong password": named(wrongPassword(t, schematest.NATSURL(t), c["nats"]),
			wrongPassword(t, schematest.RedisURL(t), c["redis"]), wrongPassword(t, schematest.PostgresURL(t), c["postgres"])),
		"nothing listens":       at("127.0.0.1:1"),
		"no such host":          at("no-such-host.invalid:1"),
		"TLS without TLS":       named("tls://u:"+c["nats"]+"@127.0.0.1:1", "rediss://u:"+c["redis"]+"@127.0.0.1:1", "postgres://u:"+c["postgres"]+"@127.0.0.1:1/db?sslmode=verify-full"),
		"several servers":       named("nats://u:"+c["nats"]+"@127.0.0.1:1,nats://"+c["nats"]+"@127.0.0.1:2", "redis://u:"+c["redis"]+"@127.0.0.1:1,127.0.0.1:2", "postgres://u:"+c["postgres"]+"@127.0.0.1:1,127.0.0.1:2/db"),
		"no address at all":     named("nats://u:"+c["nats"]+"/x@h", "redis://:"+c["redis"]+"/x@h", "postgres://u:"+c["postgres"]+"@h:port/db"),
		"a secret as an option": named("nats://h:1?token="+c["nats"], "redis://h:1/0?password="+c["redis"], "postgres://h:1/db?password="+c["postgres"]+"&nope=1"),
	}
}

func TestNoSecretIsShownWhateverGoesWrong(t *testing.T) {
	t.Parallel()
	c := newCanaries()
	base := c.settings(t)
	for trouble, settings := range c.troubles(t) {
		t.Run(trouble, func(t *testing.T) {
			t.Parallel()
			i := (&installation{t: t, settings: base}).with(settings)
			for _, args := range [][]string{
				{"migrate"},
				{"plans", "list"},
				{"plans", "apply", demoCatalog},
				{"workspaces", "list"},
				{"workspaces", "show", "ws"},
				{"workspaces", "assign", "ws", "--plan", "pro"},
				{"invalidate", "ws"},
				{"stripe", "events"},
				{"stripe", "sync"},
				{"stripe", "sweep"},
			} {
				stdout, stderr, err := i.run(args...)
				if err == nil {
					t.Errorf("headroom %v did not fail, so nothing was shown", args)
					continue
				}
				c.absent(t, "headroom "+strings.Join(args, " "), stdout+stderr+err.Error())
			}
		})
	}
}

func TestServeShowsNoSecretWhateverGoesWrong(t *testing.T) {
	t.Parallel()
	c := newCanaries()
	base := c.settings(t)
	for trouble, settings := range c.troubles(t) {
		t.Run(trouble, func(t *testing.T) {
			t.Parallel()
			var all []string
			for name, value := range (&installation{settings: base}).with(settings).settings {
				all = append(all, name+"="+value)
			}
			if _, err := LoadConfig(environ((&installation{settings: base}).with(settings).settings), os.ReadFile); err != nil {
				var stderr bytes.Buffer
				cmd := headroomCommand(t.Context(), t, "serve")
				cmd.Env, cmd.Stderr, cmd.Stdout = append(cmd.Env, all...), &stderr, &stderr
				if status := statusOf(cmd.Run()); status != exitUsage {
					t.Errorf("status %d, want %d", status, exitUsage)
				}
				c.absent(t, "serve", stderr.String()+err.Error())
				return
			}
			p := startServe(t, all...)
			for range len([]string{"nats", "redis", "postgres"}) {
				p.log.await(t, "service is not ready yet")
			}
			s := &serving{t: t, addr: p.addr, log: p.log}
			schematest.Eventually(t, "an error of each service", func() bool {
				_, body := s.readiness()
				for _, service := range []string{"nats", "redis", "postgres"} {
					if e := body.Checks[service].Error; e == "" || e == "not started yet" {
						return false
					}
				}
				return true
			})
			for _, path := range []string{"/healthz", "/readyz", "/metrics", "/openapi.json", "/v1/workspaces/ws", "/webhooks/stripe", "/none"} {
				for _, token := range []string{"", c["token"], "wrong"} {
					c.absent(t, path, answerOf(t, p.addr, path, token))
				}
			}
			p.signal(syscall.SIGTERM)
			if status := p.status(); status != exitDone {
				t.Errorf("status %d, want %d", status, exitDone)
			}
			c.absent(t, "the log", p.log.String())
		})
	}
}

func TestServeShowsNoSecretWhileItWorks(t *testing.T) {
	t.Parallel()
	c := newCanaries()
	settings := c.settings(t)
	delete(settings, "HEADROOM_NATS_CREDS")
	i := newInstallation(t).with(settings)
	i.must("plans", "apply", demoCatalog)
	var all []string
	for name, value := range i.with(map[string]string{"HEADROOM_LOG_LEVEL": "debug"}).settings {
		all = append(all, name+"="+value)
	}
	p := startServe(t, all...)
	p.log.await(t, "ready")
	js := i.jetStream()
	if d := i.decide(js, "ws", "e1"); !d.Allowed {
		t.Errorf("the decision is %+v, want an allowed one", d)
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/v1/workspaces/ws", "/v1/workspaces/ws/decisions", "/webhooks/stripe"} {
		for _, token := range []string{"", c["token"], c["token"] + "x"} {
			c.absent(t, path, answerOf(t, p.addr, path, token))
		}
	}
	p.signal(syscall.SIGTERM)
	if status := p.status(); status != exitDone {
		t.Errorf("status %d, want %d", status, exitDone)
	}
	c.absent(t, "the log", p.log.String())
}

// answerOf is all that an answer holds: status, header and body.
func answerOf(t *testing.T, addr, path, token string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var text bytes.Buffer
	if err := response.Header.Write(&text); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(&text, response.Body); err != nil {
		t.Fatal(err)
	}
	return response.Status + text.String()
}
