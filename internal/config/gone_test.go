package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/ledgerd/ledgerd/internal/must"
)

// Settings that were removed are noted, wherever they are set, and are no error.
func TestGone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	load := func(text string, args ...string) (notes []string) {
		t.Helper()
		must.OK(t, os.WriteFile(file, []byte(text), 0o600))
		flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		flags.String("witness-name", "", "") // as a flag that was removed would be
		must.OK(t, flags.MarkHidden("witness-name"))
		must.OK(t, flags.Parse(args))
		s, err := Load(flags, file)
		if err != nil {
			t.Errorf("%s %q: %v", text, args, err)
		}
		return s.Gone
	}

	const effect = " has no effect any more: ledgerd no longer cosigns the logs of others (see docs/witness.md)"
	logs, name := "setting witness.logs (in "+file+")"+effect, "setting witness.name (in "+file+")"+effect
	for text, want := range map[string][]string{
		"listen: 127.0.0.1:80\n":             nil,
		"witness:\n  logs: /etc/logs\n":      {logs},
		"witness.logs: \"\"\n":               {logs}, // as in the example of an earlier release
		"witness: {name: [a], logs: }\n":     {name, logs},
		"log:\n  level: warn\nwitness: {}\n": nil,
	} {
		if got := load(text); !slices.Equal(got, want) {
			t.Errorf("%s: got the notes %q, want %q", text, got, want)
		}
	}

	t.Setenv("LEDGERD_WITNESS_LOGS", "logs")
	want := []string{
		"setting witness.logs (LEDGERD_WITNESS_LOGS)" + effect,
		"setting witness.name (--witness-name)" + effect,
	}
	if got := load("", "--witness-name=w"); !slices.Equal(got, want) {
		t.Errorf("got the notes %q, want %q", got, want)
	}
	if err := CheckEnvironment(os.Environ()); err != nil && strings.Contains(err.Error(), "LEDGERD_WITNESS_LOGS") {
		t.Errorf("the environment is refused: %v", err)
	}
}

// What is next to them is still checked.
func TestGoneSectionsAreChecked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	for text, want := range map[string]string{
		"witness: {log: x}\n": `unknown key "witness.log"`,
		"witness: logs\n":     `unknown key "witness"`,
	} {
		must.OK(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := Load(pflag.NewFlagSet("serve", pflag.ContinueOnError), file)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "witness.logs") {
			t.Errorf("%s: got the error %v, want %s", text, err, want)
		}
	}
}

// A setting is not both.
func TestGoneSettingsAreNotKnown(t *testing.T) {
	v, err := newViper()
	must.OK(t, err)
	for _, key := range goneKeys() {
		if slices.Contains(v.AllKeys(), key) || gone()[key] == "" {
			t.Errorf("%s: %q", key, gone()[key])
		}
	}
}
