package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

func TestSecretsAreReadAsEditorsAndShellsWriteThem(t *testing.T) {
	const variable = "LEDGERD_TOKEN_FILE"
	for name, test := range map[string]struct{ text, want, fault string }{
		"without a line feed": {"ldg_x", "ldg_x", ""},
		"with a line feed":    {"ldg_x\n", "ldg_x", ""},
		"written on Windows":  {"\ufeffldg_x\r\n", "ldg_x", ""},
		"in UTF-16":           {"\xff\xfel\x00", "", "UTF-16"},
		"empty":               {"", "", "is empty"},
		"a byte order mark":   {"\ufeff\r\n", "", "is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "secret")
			must.OK(t, os.WriteFile(file, []byte(test.text), 0o600))
			t.Setenv(variable, file)
			got, err := SecretIn(variable)
			if got != test.want || (err == nil) != (test.fault == "") {
				t.Fatalf("got %q, %v, want %q", got, err, test.want)
			}
			if err != nil && !(strings.HasPrefix(err.Error(), variable+": ") && strings.Contains(err.Error(), test.fault)) {
				t.Errorf("got %v, want %s", err, test.fault)
			}
		})
	}

	t.Setenv(variable, filepath.Join(t.TempDir(), "missing"))
	if _, err := SecretIn(variable); err == nil {
		t.Error("a file that is missing was read")
	}
	t.Setenv(variable, "")
	if got, err := SecretIn(variable); got != "" || err != nil {
		t.Errorf("without a file: %q, %v", got, err)
	}
}
