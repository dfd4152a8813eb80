package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/ledgerd/ledgerd/server"
	"github.com/ledgerd/ledgerd/store"
)

// settings are what the configuration file, the environment and the flags of
// the same names decide. config.example.yaml tells of each.
type settings struct {
	Listen          string          `mapstructure:"listen" yaml:"listen"`
	Database        string          `mapstructure:"database" yaml:"database"`
	NoCopy          bool            `mapstructure:"no_copy" yaml:"no_copy"`
	MaxBody         byteSize        `mapstructure:"max_body" yaml:"max_body"`
	Streams         streamLimits    `mapstructure:"streams" yaml:"streams"`
	Webhooks        webhookSettings `mapstructure:"webhooks" yaml:"webhooks"`
	RadarMemory     byteSize        `mapstructure:"radar_memory" yaml:"radar_memory"`
	Log             logSettings     `mapstructure:"log" yaml:"log"`
	ShutdownTimeout time.Duration   `mapstructure:"shutdown_timeout" yaml:"shutdown_timeout"`
}

// streamLimits are how many live streams there may be at once.
type streamLimits struct {
	PerOrg   int `mapstructure:"per_org" yaml:"per_org"`
	PerToken int `mapstructure:"per_token" yaml:"per_token"`
}

type logSettings struct {
	Level  string `mapstructure:"level" yaml:"level"`
	Format string `mapstructure:"format" yaml:"format"`
}

// defaults are the settings where nothing else is said: the one place that
// names them.
func defaults() settings {
	return settings{
		Listen:          "127.0.0.1:8080",
		Database:        "ledger.db",
		MaxBody:         4 << 20,
		Streams:         streamLimits{PerOrg: server.DefaultStreamsPerOrg, PerToken: server.DefaultStreamsPerToken},
		Webhooks:        defaultWebhooks(),
		RadarMemory:     store.DefaultRadarMemory,
		Log:             logSettings{Level: logLevels()[0], Format: logFormats()[0]},
		ShutdownTimeout: 15 * time.Second,
	}
}

// The words that a setting takes; the first is its default.
func logLevels() []string  { return []string{"info", "debug", "warn", "error"} }
func logFormats() []string { return []string{"text", "json"} }

// settings returns the settings that hold for a command: its flags over the
// environment, over the configuration file, over the defaults.
func (p *program) settings(command *cobra.Command) (settings, error) {
	v, err := newViper()
	if err != nil {
		return settings{}, err
	}
	file := p.global.config
	if file == "" {
		file = os.Getenv("LEDGERD_CONFIG")
	}
	var inFile error
	if file != "" {
		inFile = readConfig(v, file)
	}
	for _, key := range v.AllKeys() {
		if flag := command.Flags().Lookup(flagOf(key)); flag != nil {
			if err := v.BindPFlag(key, flag); err != nil {
				return settings{}, fmt.Errorf("binding --%s: %w", flag.Name, err)
			}
		}
	}
	s, err := decodeSettings(v)
	return s, errors.Join(inFile, err)
}

// flagOf returns the name of the flag of a key; not every command has it.
func flagOf(key string) string { return strings.NewReplacer(".", "-", "_", "-").Replace(key) }

// newViper returns a viper that knows every key by its default, without which
// it would pass over the environment.
func newViper() (*viper.Viper, error) {
	v := viper.New()
	text, err := writeYAML(defaults())
	if err != nil {
		return nil, err
	}
	known := viper.New()
	known.SetConfigType("yaml")
	if err := known.ReadConfig(bytes.NewReader(text)); err != nil {
		return nil, fmt.Errorf("reading the defaults: %w", err)
	}
	for _, key := range known.AllKeys() {
		value := known.Get(key)
		if slices.Contains(listKeys(), key) {
			value = strings.Join(known.GetStringSlice(key), ",") // as the environment has it
		}
		v.SetDefault(key, value)
	}
	v.SetEnvPrefix("ledgerd")
	v.SetEnvKeyReplacer(strings.NewReplacer(".", "_"))
	v.AutomaticEnv()
	return v, nil
}

// decodeSettings turns what viper found into settings and checks them.
func decodeSettings(v *viper.Viper) (settings, error) {
	var s settings
	hooks := mapstructure.ComposeDecodeHookFunc(decodeWord, mapstructure.TextUnmarshallerHookFunc())
	err := v.UnmarshalExact(&s, viper.DecodeHook(hooks))
	found := s.check()
	undecoded(err, found) // a key that has no value yet is not below its least one
	return s, found.err()
}

// decodeWord reads durations, numbers and true or false, with messages for people.
func decodeWord(_, to reflect.Type, value any) (any, error) {
	text, ok := value.(string)
	switch {
	case ok && to == reflect.TypeFor[time.Duration]():
		d, err := time.ParseDuration(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a duration such as 15s or 1m30s", text)
		}
		return d, nil
	case ok && to.Kind() == reflect.Int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a whole number such as 100", text)
		}
		return n, nil
	case ok && to.Kind() == reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not true or false", text)
		}
		return b, nil
	}
	return value, nil
}

// undecoded adds what mapstructure could not decode, without its headings.
func undecoded(err error, found problems) {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range several.Unwrap() {
			undecoded(e, found)
		}
		return
	}
	inner := errors.Unwrap(err)
	e, ok := err.(*mapstructure.DecodeError)
	if _, deeper := errors.AsType[*mapstructure.DecodeError](inner); ok && !deeper {
		found[e.Name()] = inner.Error()
	} else if inner != nil {
		undecoded(inner, found)
	} else if err != nil {
		found[""] = err.Error()
	}
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

func (s settings) check() problems {
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
		wrong("log.level", "%q is none: use %s", s.Log.Level, either(logLevels()))
	}
	if !slices.Contains(logFormats(), s.Log.Format) {
		wrong("log.format", "%q is none: use %s", s.Log.Format, either(logFormats()))
	}
	if s.ShutdownTimeout < time.Millisecond {
		wrong("shutdown_timeout", "%v is less than 1ms", s.ShutdownTimeout)
	}
	return found
}

// addServeFlags defines the flags of the settings that only a server has.
func addServeFlags(command *cobra.Command, flags *pflag.FlagSet) {
	d := defaults()
	flags.String("listen", d.Listen, "`address` to listen on; port 0 takes a free one (LEDGERD_LISTEN)")
	flags.Var(&parsed[byteSize]{value: new(byteSize), text: d.MaxBody.String(), kind: "SIZE", parse: parseByteSize},
		"max-body", "largest request body that is read (LEDGERD_MAX_BODY)")
	addWebhookFlags(flags)
	choiceVar(command, flags, new(string), "log-level", "", "least level that is logged (LEDGERD_LOG_LEVEL)", logLevels()...)
	choiceVar(command, flags, new(string), "log-format", "", "how to log (LEDGERD_LOG_FORMAT)", logFormats()...)
	flags.Duration("shutdown-timeout", d.ShutdownTimeout, "how long a stop waits for requests, then for webhooks, to finish (LEDGERD_SHUTDOWN_TIMEOUT)")
}
