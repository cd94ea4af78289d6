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
		return slog.New(tint.NewTextHandler(w, &tint.Options{Level: config.LogLevel, TimeFormat: time.TimeOnly}))
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: config.LogLevel}))
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
