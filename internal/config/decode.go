package config

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"
)

// decodeSettings turns what viper found into settings and checks them.
func decodeSettings(v *viper.Viper) (Settings, error) {
	var s Settings
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
