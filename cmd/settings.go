package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"
)

// settings are what the configuration file, the environment and the flags of
// the same names decide. config.example.yaml tells of each.
type settings struct {
	Listen          string        `mapstructure:"listen" yaml:"listen"`
	Database        string        `mapstructure:"database" yaml:"database"`
	MaxBody         byteSize      `mapstructure:"max_body" yaml:"max_body"`
	Log             logSettings   `mapstructure:"log" yaml:"log"`
	ShutdownTimeout time.Duration `mapstructure:"shutdown_timeout" yaml:"shutdown_timeout"`
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
	if file != "" {
		if err := readConfig(v, file); err != nil {
			return settings{}, err
		}
	}
	for _, key := range v.AllKeys() {
		if flag := command.Flags().Lookup(flagOf(key)); flag != nil {
			if err := v.BindPFlag(key, flag); err != nil {
				return settings{}, fmt.Errorf("binding --%s: %w", flag.Name, err)
			}
		}
	}
	return decodeSettings(v)
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
		v.SetDefault(key, known.Get(key))
	}
	v.SetEnvPrefix("ledgerd")
	v.SetEnvKeyReplacer(strings.NewReplacer(".", "_"))
	v.AutomaticEnv()
	return v, nil
}

func readConfig(v *viper.Viper, file string) error {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no configuration file %s", file)
	}
	if err != nil {
		return err
	}
	known := v.AllKeys()
	v.SetConfigType("yaml")
	if err := v.ReadConfig(bytes.NewReader(text)); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var problems []error
	for _, key := range v.AllKeys() {
		if !slices.Contains(known, key) {
			problems = append(problems, fmt.Errorf("%s: there is no key %q; the keys are %s", file, key, listed(known)))
		}
	}
	return errors.Join(problems...)
}

func listed(keys []string) string { return strings.Join(slices.Sorted(slices.Values(keys)), ", ") }

// decodeSettings turns what viper found into settings and checks them.
func decodeSettings(v *viper.Viper) (settings, error) {
	var s settings
	hooks := mapstructure.ComposeDecodeHookFunc(
		mapstructure.StringToTimeDurationHookFunc(),
		mapstructure.TextUnmarshallerHookFunc(),
	)
	err := v.UnmarshalExact(&s, viper.DecodeHook(hooks))
	if err != nil {
		return s, fmt.Errorf("configuration: %s", decodeProblems(err))
	}
	return s, s.check()
}

// decodeProblems returns mapstructure's findings without its heading.
func decodeProblems(err error) string {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err.Error()
	}
	var lines []string
	for _, e := range joined.Unwrap() {
		lines = append(lines, e.Error())
	}
	return strings.Join(lines, "; ")
}

func (s settings) check() error {
	var problems []error
	wrong := func(key, format string, args ...any) {
		problems = append(problems, fmt.Errorf("configuration: %s: %s", key, fmt.Sprintf(format, args...)))
	}
	if _, _, err := net.SplitHostPort(s.Listen); err != nil {
		wrong("listen", "%q is not an address such as 127.0.0.1:8080 or :8080", s.Listen)
	}
	if s.Database == "" {
		wrong("database", "it must name a file")
	}
	if s.MaxBody < 1<<10 || s.MaxBody > 1<<30 {
		wrong("max_body", "%v is not between 1KiB and 1GiB", s.MaxBody)
	}
	if !slices.Contains(logLevels(), s.Log.Level) {
		wrong("log.level", "%q is none: use %s", s.Log.Level, either(logLevels()))
	}
	if !slices.Contains(logFormats(), s.Log.Format) {
		wrong("log.format", "%q is none: use %s", s.Log.Format, either(logFormats()))
	}
	if s.ShutdownTimeout <= 0 {
		wrong("shutdown_timeout", "%v is no time: use one such as 15s", s.ShutdownTimeout)
	}
	return errors.Join(problems...)
}

// addServeFlags defines the flags of the settings that only a server has.
func addServeFlags(command *cobra.Command, flags *pflag.FlagSet) {
	d := defaults()
	flags.String("listen", d.Listen, "`address` to listen on; port 0 takes a free one (LEDGERD_LISTEN)")
	flags.Var(&parsed[byteSize]{value: new(byteSize), text: d.MaxBody.String(), kind: "SIZE", parse: parseByteSize},
		"max-body", "largest request body that is read (LEDGERD_MAX_BODY)")
	choiceVar(command, flags, new(string), "log-level", "", "least level that is logged (LEDGERD_LOG_LEVEL)", logLevels()...)
	choiceVar(command, flags, new(string), "log-format", "", "how to log (LEDGERD_LOG_FORMAT)", logFormats()...)
	flags.Duration("shutdown-timeout", d.ShutdownTimeout, "how long a stop waits for requests to finish (LEDGERD_SHUTDOWN_TIMEOUT)")
}
