package main

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"
)

// newLogger writes coloured lines on a terminal and JSON elsewhere, unless
// LOG_FORMAT says which.
func newLogger(w io.Writer, config Config) *slog.Logger {
	format := config.LogFormat
	if format == logFormatAuto {
		format = logFormatJSON
		if isTerminal(w) {
			format = logFormatTint
		}
	}
	if format == logFormatTint {
		return slog.New(tint.NewTextHandler(w, &tint.Options{Level: config.LogLevel, TimeFormat: time.TimeOnly, ReplaceAttr: readable}))
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: config.LogLevel, ReplaceAttr: readable}))
}

// readable writes a duration as a person does, such as 291ms, and not in nanoseconds.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() != slog.KindDuration {
		return a
	}
	d := a.Value.Duration()
	if d.Abs() >= time.Millisecond {
		d = d.Round(time.Millisecond)
	}
	return slog.String(a.Key, d.String())
}

// isTerminal reports whether w is a character device that a person may watch.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
