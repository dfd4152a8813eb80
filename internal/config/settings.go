// Package config is the configuration: its keys with their defaults, and how it is
// read from flags, the environment and a file.
package config

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/server"
	"github.com/ledgerd/ledgerd/store"
)

// Settings are what the configuration file, the environment and the flags of
// the same names decide. config.example.yaml tells of each.
type Settings struct {
	Listen          string        `mapstructure:"listen" yaml:"listen"`
	Database        string        `mapstructure:"database" yaml:"database"`
	NoCopy          bool          `mapstructure:"no_copy" yaml:"no_copy"`
	MaxBody         Size          `mapstructure:"max_body" yaml:"max_body"`
	Streams         Streams       `mapstructure:"streams" yaml:"streams"`
	Webhooks        Webhooks      `mapstructure:"webhooks" yaml:"webhooks"`
	RadarMemory     Size          `mapstructure:"radar_memory" yaml:"radar_memory"`
	Log             Log           `mapstructure:"log" yaml:"log"`
	ShutdownTimeout time.Duration `mapstructure:"shutdown_timeout" yaml:"shutdown_timeout"`
}

// Streams are how many live streams there may be at once.
type Streams struct {
	PerOrg   int `mapstructure:"per_org" yaml:"per_org"`
	PerToken int `mapstructure:"per_token" yaml:"per_token"`
}

// Log says what is logged, and how.
type Log struct {
	Level  string `mapstructure:"level" yaml:"level"`
	Format string `mapstructure:"format" yaml:"format"`
}

// Default returns the default settings. They are named nowhere else.
func Default() Settings {
	return Settings{
		Listen:          "127.0.0.1:8080",
		Database:        "ledger.db",
		MaxBody:         4 << 20,
		Streams:         Streams{PerOrg: server.DefaultStreamsPerOrg, PerToken: server.DefaultStreamsPerToken},
		Webhooks:        defaultWebhooks(),
		RadarMemory:     store.DefaultRadarMemory,
		Log:             Log{Level: logLevels()[0], Format: logFormats()[0]},
		ShutdownTimeout: 15 * time.Second,
	}
}

// The words that a setting takes; the first is its default.
func logLevels() []string  { return []string{"info", "debug", "warn", "error"} }
func logFormats() []string { return []string{"text", "json"} }

func (s Settings) check() problems {
	found := problems{}
	wrong := func(key, format string, args ...any) { found[key] = fmt.Sprintf(format, args...) }
	if _, _, err := net.SplitHostPort(s.Listen); err != nil {
		wrong("listen", "%q is not an address such as 127.0.0.1:8080 or :8080", s.Listen)
	}
	if s.Database == "" {
		wrong("database", "it must name a file")
	}
	if s.MaxBody < 1<<10 || s.MaxBody > 1<<30 {
		wrong("max_body", "%v is not between 1KiB and 1GiB", s.MaxBody)
	}
	if s.Streams.PerOrg < 1 {
		wrong("streams.per_org", "%d is less than 1", s.Streams.PerOrg)
	}
	if s.Streams.PerToken < 1 {
		wrong("streams.per_token", "%d is less than 1", s.Streams.PerToken)
	}
	s.Webhooks.check(wrong)
	if s.RadarMemory < 1<<20 || s.RadarMemory > 64<<30 {
		wrong("radar_memory", "%v is not between 1MiB and 64GiB", s.RadarMemory)
	}
	if !slices.Contains(logLevels(), s.Log.Level) {
		wrong("log.level", "%q is none: use %s", s.Log.Level, flagvalue.OneOf(logLevels()))
	}
	if !slices.Contains(logFormats(), s.Log.Format) {
		wrong("log.format", "%q is none: use %s", s.Log.Format, flagvalue.OneOf(logFormats()))
	}
	if s.ShutdownTimeout < time.Millisecond {
		wrong("shutdown_timeout", "%v is less than 1ms", s.ShutdownTimeout)
	}
	return found
}

// Logger returns a logger that writes to w.
func (l Log) Logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{}
	var level slog.Level
	if level.UnmarshalText([]byte(l.Level)) == nil { // check has seen it
		options.Level = level
	}
	if l.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// problems are what is wrong with settings, by key.
type problems map[string]string

func (p problems) err() error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(p)) {
		errs = append(errs, fmt.Errorf("configuration: %s: %s", key, p[key]))
	}
	return errors.Join(errs...)
}
