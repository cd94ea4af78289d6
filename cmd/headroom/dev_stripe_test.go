package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A person plays a subscription's life by hand, and sees after each step what became of
// the workspace.
func TestDevStripePlaysASubscription(t *testing.T) {
	t.Parallel()
	env := map[string]string{"XDG_STATE_HOME": t.TempDir()}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	said, ended := newShown(), make(chan error, 1)
	go func() { ended <- run(ctx, []string{"dev", "--speed", "max"}, environ(env), said, said) }()
	t.Cleanup(cancel)
	said.await(t, "Is it ready?")
	for _, step := range []struct {
		action, workspace string
		shows             []string
	}{
		{"subscribe", "ws_played", []string{"stripe tells customer.subscription.created", "pro (revision 1)", "(stripe, active)"}},
		{"renew", "ws_played", []string{"stripe tells invoice.paid", "cycle", "(on a test clock)"}},
		{"upgrade", "ws_played", []string{"stripe tells customer.subscription.updated", "enterprise (revision 1)"}},
		{"downgrade", "ws_played", []string{"stripe tells customer.subscription.updated", "plan          pro (revision 1)"}},
		{"fail-payment", "ws_played", []string{"stripe tells invoice.payment_failed", "(stripe, past_due)"}},
		{"recover-payment", "ws_played", []string{"stripe tells invoice.paid", "(stripe, active)"}},
		{"cancel-at-end", "ws_played", []string{"stripe tells customer.subscription.updated", "(stripe, active)"}},
		{"renew", "ws_played", []string{"stripe tells customer.subscription.deleted", "none, on the default plan"}},
		{"trial", "ws_tried", []string{"(stripe, trialing)"}},
		{"trial-end", "ws_tried", []string{"(stripe, active)", "trial_end"}},
		{"cancel", "ws_tried", []string{"stripe tells customer.subscription.deleted", "none, on the default plan"}},
	} {
		var out, errs bytes.Buffer
		err := run(t.Context(), []string{"dev", "stripe", step.action, step.workspace}, environ(env), &out, &errs)
		if err != nil {
			t.Errorf("%s: %v\n%s", step.action, err, errs.String())
		}
		for _, text := range step.shows {
			if !strings.Contains(out.String(), text) {
				t.Errorf("%s does not show %q:\n%s", step.action, text, out.String())
			}
		}
	}
	for _, refused := range []struct{ action, workspace, text string }{
		{"renew", "ws_tried", "has no live subscription"},
		{"recover-payment", "ws_paying", "nothing is unpaid"},
		{"subscribe", "ws_paying", "already"},
		{"downgrade", "ws_paying", "no plan of the catalog"},
		{"refund", "ws_paying", "renew"},
		{"renew", "ws.paying", "workspace"},
	} {
		err := run(t.Context(), []string{"dev", "stripe", refused.action, refused.workspace}, environ(env), new(bytes.Buffer), new(bytes.Buffer))
		if err == nil || !strings.Contains(err.Error(), refused.text) {
			t.Errorf("%s %s: %v, want %q", refused.action, refused.workspace, err, refused.text)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("dev ended with %v", err)
	}
	if _, err := os.Stat(filepath.Join(env["XDG_STATE_HOME"], "headroom", "dev.json")); !os.IsNotExist(err) {
		t.Errorf("its address is still there: %v", err)
	}
	err := run(t.Context(), []string{"dev", "stripe", "renew", "ws_played"}, environ(env), new(bytes.Buffer), new(bytes.Buffer))
	if err == nil || !strings.Contains(err.Error(), "no `headroom dev` runs here") {
		t.Errorf("without a dev: %v", err)
	}
}

// shown is what a command has printed so far.
type shown struct {
	text    chan string
	changed chan struct{}
}

func newShown() *shown {
	s := &shown{text: make(chan string, 1), changed: make(chan struct{}, 1)}
	s.text <- ""
	return s
}

// Write is for io.Writer.
func (s *shown) Write(body []byte) (int, error) {
	s.text <- <-s.text + string(body)
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return len(body), nil
}

func (s *shown) read() string {
	text := <-s.text
	s.text <- text
	return text
}

func (s *shown) await(t *testing.T, text string) {
	t.Helper()
	deadline := time.After(processPatience)
	for !strings.Contains(s.read(), text) {
		select {
		case <-s.changed:
		case <-deadline:
			t.Fatalf("it did not say %q:\n%s", text, s.read())
		}
	}
}
