package main

import (
	"strings"
	"testing"
)

// lines is what go test -json prints for the events, each as action, test, output.
func lines(events ...[3]string) string {
	var text strings.Builder
	for _, e := range events {
		text.WriteString(`{"Action":"` + e[0] + `","Package":"example/p","Test":"` + e[1] + `","Output":"` + e[2] + `"}` + "\n")
	}
	return text.String()
}

func TestReport(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		in      string
		prints  string
		verdict string
	}{
		"a pass is one line and quiet": {
			in: lines(
				[3]string{"output", "TestA", `=== RUN   TestA\n`},
				[3]string{"output", "TestA", `    a_test.go:1: chatter\n`},
				[3]string{"pass", "TestA", ""},
				[3]string{"output", "", `ok  \texample/p\t0.1s\n`},
				[3]string{"pass", "", ""},
			),
			prints: "ok  \texample/p\t0.1s\n1 passed, 0 failed, 0 skipped\n",
		},
		"a failure shows what its test printed": {
			in: lines(
				[3]string{"output", "TestA", `    a_test.go:1: boom\n`},
				[3]string{"output", "TestA", `--- FAIL: TestA (0.00s)\n`},
				[3]string{"fail", "TestA", ""},
				[3]string{"output", "", `FAIL\texample/p\t0.1s\n`},
				[3]string{"fail", "", ""},
			),
			prints:  "    a_test.go:1: boom\n--- FAIL: TestA (0.00s)\nFAIL\texample/p\t0.1s\n0 passed, 1 failed, 0 skipped\n",
			verdict: "no test ran",
		},
		"a test that never ended is named, even if it said nothing": {
			in: lines(
				[3]string{"output", "TestHangs", `=== RUN   TestHangs\n`},
				[3]string{"output", "", `FAIL\texample/p\t540s\n`},
				[3]string{"fail", "", ""},
			),
			prints:  "FAIL\texample/p\t540s\nnever ended: example/p TestHangs\n0 passed, 0 failed, 0 skipped\n",
			verdict: "no test ran",
		},
		"a skipped test is a failure that is named": {
			in: lines(
				[3]string{"pass", "TestA", ""},
				[3]string{"output", "TestB", `    b_test.go:1: no server\n`},
				[3]string{"skip", "TestB", ""},
				[3]string{"output", "", `ok  \texample/p\t0.1s\n`},
				[3]string{"pass", "", ""},
			),
			prints: "    b_test.go:1: no server\nok  \texample/p\t0.1s\nskipped: example/p TestB\n" +
				"1 passed, 0 failed, 1 skipped\n",
			verdict: "1 tests were skipped; a test that cannot run here is a failure",
		},
		"a package without tests is no skip": {
			in:      lines([3]string{"skip", "", ""}, [3]string{"pass", "TestA", ""}),
			prints:  "1 passed, 0 failed, 0 skipped\n",
			verdict: "",
		},
		"what never ended is shown": {
			in:      lines([3]string{"pass", "TestA", ""}, [3]string{"output", "TestB", `panic: timed out\n`}),
			prints:  "never ended: example/p TestB\npanic: timed out\n1 passed, 0 failed, 0 skipped\n",
			verdict: "",
		},
		"a secret in the output of a test that passes is a failure that does not repeat it": {
			in: lines(
				[3]string{"output", "TestA", `    a_test.go:1: nats://headroom:devstack-secret-AAAABBBBCCCC@127.0.0.1\n`},
				[3]string{"pass", "TestA", ""},
			),
			prints:  "example/p TestA prints the password of a private service\n1 passed, 0 failed, 0 skipped\n",
			verdict: "a secret was printed, by 1 tests or packages",
		},
		"a line that is no event is kept": {
			in:      "# a compiler's word\n" + lines([3]string{"pass", "TestA", ""}),
			prints:  "# a compiler's word\n1 passed, 0 failed, 0 skipped\n",
			verdict: "",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			r := newReport(&out)
			if err := r.read(strings.NewReader(c.in)); err != nil {
				t.Fatal(err)
			}
			r.close()
			if out.String() != c.prints {
				t.Errorf("prints\n%s\nwant\n%s", out.String(), c.prints)
			}
			verdict := ""
			if err := r.verdict(); err != nil {
				verdict = err.Error()
			}
			if verdict != c.verdict {
				t.Errorf("verdict %q, want %q", verdict, c.verdict)
			}
		})
	}
}

func TestSecretsAreTold(t *testing.T) {
	t.Parallel()
	r := newReport(&strings.Builder{})
	for line, want := range map[string]string{
		"postgres://u:a-long-password@h/db":       "a password in a URL",
		"whsec_" + "0123456789abcdef":             "a signing secret of a webhook",
		"key rk_live_" + "0123456789abcdef here":  "a Stripe key",
		"Authorization: Bearer 0123456789abcdef0": "a bearer token",
		"-----BEGIN EC PRIVATE KEY-----":          "a private key",
		"-----BEGIN USER NKEY SEED-----":          "a private key",
		"postgres://***@h/db":                     "",
		"http://127.0.0.1:8080/v1/workspaces":     "",
		"whsec_***":                               "",
		"a signing secret whsec_… and sk_test_":   "",
	} {
		if got := r.shown(line); got != want {
			t.Errorf("%q shows %q, want %q", line, got, want)
		}
	}
}
