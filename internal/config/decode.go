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

// decodeSettings decodes the values that viper has read, and checks the settings.
func decodeSettings(v *viper.Viper) (Settings, error) {
	var s Settings
	hooks := mapstructure.ComposeDecodeHookFunc(decodeWord, mapstructure.TextUnmarshallerHookFunc())
	err := v.UnmarshalExact(&s, viper.DecodeHook(hooks))
	p := s.check()
	addDecodeErrors(p, err) // they replace the range errors of the same keys
	return s, p.err()
}

// decodeWord decodes durations, whole numbers and booleans from text.
func decodeWord(_, to reflect.Type, value any) (any, error) {
	text, ok := value.(string)

	switch {
	case ok && to == reflect.TypeFor[time.Duration]():
		d, err := time.ParseDuration(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a duration (use e.g. 15s or 1m30s)", text)
		}
		return d, nil
	case ok && to.Kind() == reflect.Int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a whole number", text)
		}
		return n, nil
	case ok && to.Kind() == reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("%q (use true or false)", text)
		}
		return b, nil
	}

	return value, nil
}

// addDecodeErrors adds the errors of mapstructure to p, without its headings.
func addDecodeErrors(p problems, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			addDecodeErrors(p, e)
		}
		return
	}

	inner := errors.Unwrap(err)
	e, ok := err.(*mapstructure.DecodeError)
	if _, deeper := errors.AsType[*mapstructure.DecodeError](inner); ok && !deeper {
		p[e.Name()] = inner.Error()
	} else if inner != nil {
		addDecodeErrors(p, inner)
	} else if err != nil {
		p[""] = err.Error()
	}
}
