package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"
)

// Load returns the settings in effect for a command. Its flags take precedence over
// the environment, that over the configuration file, and that over the defaults. If
// file is empty, LEDGERD_CONFIG names it.
func Load(flags *pflag.FlagSet, file string) (Settings, error) {
	v, err := newViper()
	if err != nil {
		return Settings{}, err
	}
	if file == "" {
		file = os.Getenv("LEDGERD_CONFIG")
	}
	var inFile error
	if file != "" {
		inFile = readConfig(v, file)
	}
	for _, key := range v.AllKeys() {
		if flag := flags.Lookup(flagOf(key)); flag != nil {
			if err := v.BindPFlag(key, flag); err != nil {
				return Settings{}, fmt.Errorf("binding --%s: %w", flag.Name, err)
			}
		}
	}
	s, err := decodeSettings(v)
	return s, errors.Join(inFile, err)
}

// newViper returns a viper that knows every key by its default, without which
// it would pass over the environment.
func newViper() (*viper.Viper, error) {
	v := viper.New()
	text, err := yaml.Marshal(Default())
	if err != nil {
		return nil, fmt.Errorf("writing the defaults: %w", err)
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
