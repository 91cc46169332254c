package daemon

import (
	"io"
	"log/slog"
)

// Logging are the settings of a log, for embedding.
type Logging struct {
	LogLevel  string `name:"log_level" default:"info" oneof:"debug info warn error" help:"the least level that is logged"`
	LogFormat string `name:"log_format" default:"text" oneof:"text json" help:"how lines of the log look"`
}

// Logger writes to w as the settings say.
func (l *Logging) Logger(w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(l.LogLevel)) // it is one of the four
	o := &slog.HandlerOptions{Level: level}
	if l.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
