package sigstore

import (
	"errors"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger/identity"
)

// A panic in the library with any value becomes the error of an invalid bundle.
func TestPanicIsAnError(t *testing.T) {
	for name, f := range map[string]func() error{
		"an index":   func() error { return errors.New(strings.Split("", ",")[1]) },
		"an error":   func() error { panic(errors.New("x")) },
		"nil itself": func() error { panic(nil) }, //nolint:govet // what a library may do
	} {
		if err := guard(f); !errors.Is(err, identity.ErrMalformedBundle) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := guard(func() error { return errStale }); !errors.Is(err, errStale) {
		t.Errorf("an error: got %v", err)
	}
}

// Messages of the library are shortened, and have no characters that a terminal would obey.
func TestClip(t *testing.T) {
	for text, want := range map[string]string{
		"proto:\u00a0x\ny":              "proto: x y",
		"\x1b[31m\u202e\xff":            "?[31m??",
		strings.Repeat("é", maxMessage): strings.Repeat("é", maxMessage/2) + "…",
	} {
		if got := clip(errors.New(text)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
