package service

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/logqueue"
)

// flushTimeout is how long Close waits for the reader of a log.
const flushTimeout = 2 * time.Second

// A Log is the log of a server. A slow reader of a log from [OpenLog] does not block the
// server: lines are dropped and counted. The level of other logs cannot be changed.
type Log struct {
	*slog.Logger
	level *slog.LevelVar // nil if it cannot be changed
	queue *logqueue.Queue
}

// OpenLog returns a log with the settings that writes to w. The caller must close it.
func OpenLog(w io.Writer, s config.Log) *Log {
	level := new(slog.LevelVar)
	level.Set(s.MinLevel())
	queue := logqueue.New(w, func(dropped int) []byte {
		var line bytes.Buffer
		s.Logger(&line, slog.LevelWarn).Warn("log lines were dropped: their reader was too slow", "lines", dropped)
		return line.Bytes()
	})
	return &Log{s.Logger(queue, level), level, queue}
}

// Reload loads the settings again and applies those that a running server can change:
// the level of its log. It logs which other settings differ from those that the server
// started with. If they cannot be loaded, it logs the error and changes nothing.
func (l *Log) Reload(started config.Settings, load func() (config.Settings, error)) {
	s, err := load()
	if err != nil {
		l.Error("configuration not reloaded: nothing was changed", "error", err)
		return
	}
	l.level.Set(s.Log.MinLevel())
	l.Info("configuration reloaded", "log.level", s.Log.Level)

	started.Log.Level = s.Log.Level
	changed, err := s.Changed(started)
	if err != nil {
		l.Error("cannot compare the configuration with the one in effect", "error", err)
	}
	if len(changed) > 0 {
		l.Warn("changed settings take effect after a restart", "settings", strings.Join(changed, ","))
	}
}

// Close waits until the queued lines are written, for at most two seconds.
func (l *Log) Close() { l.queue.Close(flushTimeout) }
