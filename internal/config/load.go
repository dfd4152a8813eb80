package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"
)

// Load returns the settings in effect for a command. Flags take precedence over the
// environment, the environment over the configuration file, and the file over the
// defaults. If file is empty, LEDGERD_CONFIG names the configuration file, if set.
func Load(flags *pflag.FlagSet, file string) (Settings, error) {
	v, err := newViper()
	if err != nil {
		return Settings{}, err
	}

	if file == "" {
		file = os.Getenv("LEDGERD_CONFIG")
	}
	var fileErr error
	var notes []string
	if file != "" {
		notes, fileErr = readConfig(v, file)
	}

	for _, key := range v.AllKeys() {
		if flag := flags.Lookup(flagOf(key)); flag != nil {
			if err := v.BindPFlag(key, flag); err != nil {
				return Settings{}, fmt.Errorf("bind --%s: %w", flag.Name, err)
			}
		}
	}

	s, err := decodeSettings(v)
	s.DatabaseSource = sourceOf("database", v, flags)
	s.Gone = append(notes, goneOutside(flags)...)
	if flags.Lookup("no-copy") != nil {
		s.NoCopy, _ = flags.GetBool("no-copy") // it is a bool
	}
	return s, errors.Join(fileErr, err)
}

// sourceOf says where the value of a key comes from.
func sourceOf(key string, v *viper.Viper, flags *pflag.FlagSet) Source {
	switch {
	case flags.Changed(flagOf(key)):
		return FromFlag
	case os.Getenv(Variable(key)) != "":
		return FromEnvironment
	case v.InConfig(key):
		return FromFile
	}
	return FromDefault
}

// newViper returns a viper with the default of every key. viper only looks up the
// environment variables of keys that it knows.
func newViper() (*viper.Viper, error) {
	v := viper.New()
	known, err := readBack(Default())
	if err != nil {
		return nil, fmt.Errorf("read the defaults: %w", err)
	}
	for _, key := range known.AllKeys() {
		value := known.Get(key)
		if slices.Contains(listKeys(), key) {
			value = strings.Join(known.GetStringSlice(key), ",") // as in the environment
		}
		v.SetDefault(key, value)
	}

	v.SetEnvPrefix("ledgerd")
	v.SetEnvKeyReplacer(strings.NewReplacer(".", "_"))
	v.AutomaticEnv()
	return v, nil
}

// readBack returns a viper that has read the settings as YAML.
func readBack(s Settings) (*viper.Viper, error) {
	text, err := yaml.Marshal(s)
	if err != nil {
		return nil, err
	}
	v := viper.New()
	v.SetConfigType("yaml")
	return v, v.ReadConfig(bytes.NewReader(text))
}

// Changed returns the keys of the settings in which s and old differ, sorted. It does
// not see a change of the password in a URL.
func (s Settings) Changed(old Settings) ([]string, error) {
	now, err := readBack(s)
	if err != nil {
		return nil, err
	}
	before, err := readBack(old)
	if err != nil {
		return nil, err
	}
	var changed []string
	for _, key := range now.AllKeys() {
		if !reflect.DeepEqual(now.Get(key), before.Get(key)) {
			changed = append(changed, key)
		}
	}
	slices.Sort(changed)
	return changed, nil
}
