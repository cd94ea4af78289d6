package main

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestTheLogWritesDurationsAsAPersonDoes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ format, want string }{
		"json": {logFormatJSON, `"delay":"291ms"`},
		"tint": {logFormatTint, `delay=291ms`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			log := newLogger(&out, Config{LogFormat: test.format, LogLevel: slog.LevelInfo})
			log.Info("deferred", "delay", 291_234_567*time.Nanosecond, "short", 1500*time.Nanosecond)
			plain := strings.NewReplacer("\x1b[2m", "", "\x1b[0m", "").Replace(out.String())
			if !strings.Contains(plain, test.want) || !strings.Contains(plain, "1.5µs") {
				t.Errorf("the line is %s, want %s and 1.5µs in it", out.String(), test.want)
			}
		})
	}
}
