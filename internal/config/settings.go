// Package config defines the settings with their defaults, and loads them from flags,
// the environment and a file. A new one is added in settings.go, and one that is removed
// is named in gone.go.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

// Settings are the settings of ledgerd. config.example.yaml describes each of them.
type Settings struct {
	Listen string `mapstructure:"listen" yaml:"listen"`
	TLS    TLS    `mapstructure:"tls" yaml:"tls"`
	// TrustedProxies are the networks whose X-Forwarded-For names the client.
	TrustedProxies Networks `mapstructure:"trusted_proxies" yaml:"trusted_proxies,flow"`
	BaseURL        BaseURL  `mapstructure:"base_url" yaml:"base_url"`
	Database       Database `mapstructure:"database" yaml:"database"`
	// ExternalCheckpoints leaves the checkpoints of the write-ahead log to another program.
	ExternalCheckpoints bool          `mapstructure:"external_checkpoints" yaml:"external_checkpoints"`
	Backup              Backup        `mapstructure:"backup" yaml:"backup"`
	Metrics             Metrics       `mapstructure:"metrics" yaml:"metrics"`
	MaxBody             Size          `mapstructure:"max_body" yaml:"max_body"`
	Limits              Limits        `mapstructure:"limits" yaml:"limits"`
	Webhooks            Webhooks      `mapstructure:"webhooks" yaml:"webhooks"`
	RadarMemory         Size          `mapstructure:"radar_memory" yaml:"radar_memory"`
	Log                 Log           `mapstructure:"log" yaml:"log"`
	OIDC                OIDC          `mapstructure:"oidc" yaml:"oidc"`
	SignIn              SignIn        `mapstructure:"sign_in" yaml:"sign_in"`
	ShutdownDelay       time.Duration `mapstructure:"shutdown_delay" yaml:"shutdown_delay"`

	// NoCopy is the flag --no-copy: a database is migrated without a copy. It is not a setting itself.
	NoCopy bool `mapstructure:"-" yaml:"-"`
	// DatabaseSource says where Database comes from. It is not a setting itself.
	DatabaseSource Source `mapstructure:"-" yaml:"-"`
	// Gone has a note about each setting that is set and was removed. It is not a setting itself.
	Gone []string `mapstructure:"-" yaml:"-"`
}

// A Source says where the value of a setting comes from.
type Source int

// The sources, in ascending precedence.
const (
	FromDefault Source = iota
	FromFile
	FromEnvironment
	FromFlag
)

// Limits are how often callers may send requests. 0 means no limit.
type Limits struct {
	// Requests is the number per second with one token.
	Requests int `mapstructure:"requests" yaml:"requests"`
}

// maxRate is the maximum of Limits.Requests.
const maxRate = 1_000_000

// Log holds the settings of the server's log, and of the transparency logs.
type Log struct {
	Level  string `mapstructure:"level" yaml:"level"`
	Format string `mapstructure:"format" yaml:"format"`
	// KeyDir is the folder with the keys of the transparency logs. If it is empty, it is next
	// to the database; see [Settings.KeyDir].
	KeyDir string `mapstructure:"key_dir" yaml:"key_dir"`
	// StateDir is the folder with what this server signed last. If it is empty, it is KeyDir; see
	// [Settings.StateDir].
	StateDir string `mapstructure:"state_dir" yaml:"state_dir"`
	// Policy is the file with the witnesses that cosign the logs; see [Log.LoadPolicy].
	Policy string `mapstructure:"policy" yaml:"policy"`
}

// OIDC holds the settings of the issuers whose tokens are exchanged.
type OIDC struct {
	// AllowedNetworks are the private networks in which issuers may be.
	AllowedNetworks Networks `mapstructure:"allowed_networks" yaml:"allowed_networks,flow"`
}

// Guard returns a guard that refuses to connect to issuers in private networks that are not
// allowed.
func (o OIDC) Guard() *dispatch.Guard {
	return dispatch.NewGuard(o.AllowedNetworks).For("oidc.allowed_networks")
}

// Default returns the default settings.
func Default() Settings {
	return Settings{
		Listen:        "127.0.0.1:8080",
		Database:      "ledger.db",
		Backup:        defaultBackup(),
		MaxBody:       4 << 20,
		Limits:        Limits{Requests: 1000},
		Webhooks:      defaultWebhooks(),
		RadarMemory:   store.DefaultRadarMemory,
		Log:           Log{Level: logLevels()[0], Format: logFormats()[0]},
		ShutdownDelay: time.Second,
	}
}

// The values that a setting accepts; the first is its default.
func logLevels() []string  { return []string{"info", "debug", "warn", "error"} }
func logFormats() []string { return []string{"text", "json"} }

// check returns the settings that are invalid.
func (s Settings) check() problems {
	p := problems{}
	invalid := func(key, format string, args ...any) { p[key] = fmt.Sprintf(format, args...) }
	if err := checkListen(s.Listen); err != nil {
		invalid("listen", "%v", err)
	}
	s.TLS.check(invalid)
	if s.Database == "" {
		invalid("database", "empty: name a file")
	}
	s.Backup.check(invalid)
	s.Metrics.check(invalid)
	if s.MaxBody < 1<<10 || s.MaxBody > 1<<30 {
		invalid("max_body", "%v is out of range (use 1KiB to 1GiB)", s.MaxBody)
	}

	if n := s.Limits.Requests; n < 0 || n > maxRate {
		invalid("limits.requests", "%d is out of range (use 0 to %d)", n, maxRate)
	}
	s.Webhooks.check(invalid)
	if s.RadarMemory < 1<<20 || s.RadarMemory > 64<<30 {
		invalid("radar_memory", "%v is out of range (use 1MiB to 64GiB)", s.RadarMemory)
	}

	if _, err := ParseLogLevel(s.Log.Level); err != nil {
		invalid("log.level", "%v", err)
	}
	if !slices.Contains(logFormats(), s.Log.Format) {
		invalid("log.format", "%q is not a log format (use %s)", s.Log.Format, flagvalue.OneOf(logFormats()))
	}
	if _, err := s.SignIn.Party(s.BaseURL); err != nil {
		invalid("sign_in.rp_id", "%v", err)
	}
	if s.ShutdownDelay < 0 || s.ShutdownDelay > 10*time.Minute {
		invalid("shutdown_delay", "%v is out of range (use 0s to 10m)", s.ShutdownDelay)
	}

	return p
}

// ACMEFolder returns the folder of the ACME account and certificates.
func (s Settings) ACMEFolder() string { return cmp.Or(s.TLS.Folder, string(s.Database)+"-acme") }

// KeyDir returns the folder with the keys of the transparency logs.
func (s Settings) KeyDir() string { return cmp.Or(s.Log.KeyDir, string(s.Database)+"-keys") }

// StateDir returns the folder with the last checkpoints that this server has signed, and with the
// private keys of its receipts.
func (s Settings) StateDir() string { return cmp.Or(s.Log.StateDir, s.KeyDir()) }

// MinLevel returns the minimum level to log.
func (l Log) MinLevel() slog.Level {
	level, _ := ParseLogLevel(l.Level) // check accepts valid levels only
	return level
}

// ParseLogLevel parses the name of a log level. The error lists the valid names.
func ParseLogLevel(name string) (slog.Level, error) {
	if !slices.Contains(logLevels(), name) {
		return 0, fmt.Errorf("%q is not a log level (use %s)", name, flagvalue.OneOf(logLevels()))
	}
	var level slog.Level
	err := level.UnmarshalText([]byte(name))
	return level, err
}

// Logger returns a logger with the format of these settings that writes to w. The
// minimum level is that of level, which may change.
func (l Log) Logger(w io.Writer, level slog.Leveler) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if l.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// problems maps the keys of invalid settings to messages.
type problems map[string]string

func (p problems) err() error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(p)) {
		if key == "" {
			errs = append(errs, fmt.Errorf("invalid configuration: %s", p[key]))
			continue
		}
		errs = append(errs, fmt.Errorf("invalid setting %s: %s", key, p[key]))
	}
	return errors.Join(errs...)
}

// CheckForServer returns an error if the settings do not suit a server with the database. Replicas
// with one database have the same keys, so the folder is not chosen for them.
func (s Settings) CheckForServer() error {
	switch {
	case !s.Database.IsServer():
		return nil
	case s.Log.KeyDir == "":
		return errors.New("log.key_dir is not set: with PostgreSQL, name a folder with the keys of the logs, " +
			"which is the same on every replica (for a new ledger, run 'ledgerd log new-seed FOLDER')")
	case len(s.TLS.Domains) > 0 && s.TLS.Folder == "":
		return errors.New("tls.folder is not set: with PostgreSQL, name a folder for the certificates")
	case s.Backup.Folder != "":
		return errors.New("backup.folder is set: back up PostgreSQL with its own tools, such as pg_basebackup")
	}
	return nil
}
