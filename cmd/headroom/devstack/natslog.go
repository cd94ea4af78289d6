package devstack

import (
	"context"
	"fmt"
	"log/slog"
)

// natsLog takes the server's log lines as debug lines, and keeps the fatal one,
// after which the server does not serve.
type natsLog struct {
	log   *slog.Logger
	fatal chan string
}

func (l *natsLog) Fatalf(format string, v ...any) {
	select {
	case l.fatal <- fmt.Sprintf(format, v...):
	default:
	}
	l.write("fatal", format, v)
}

func (l *natsLog) Errorf(format string, v ...any)  { l.write("error", format, v) }
func (l *natsLog) Warnf(format string, v ...any)   { l.write("warning", format, v) }
func (l *natsLog) Noticef(format string, v ...any) { l.write("notice", format, v) }
func (l *natsLog) Debugf(format string, v ...any)  { l.write("debug", format, v) }
func (l *natsLog) Tracef(format string, v ...any)  { l.write("trace", format, v) }

func (l *natsLog) write(severity, format string, v []any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug("nats server", "severity", severity, "line", fmt.Sprintf(format, v...))
	}
}
