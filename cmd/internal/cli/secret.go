package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
)

// Secret returns the secret in a text, such as a token, without a byte order mark and the white space
// around it. Its errors do not contain the secret.
func Secret(text []byte) (string, error) {
	text, err := ledger.UTF8(text)
	return strings.TrimSpace(string(text)), err
}

// SecretIn returns the secret in the file that an environment variable names, or "" if the variable is not
// set.
func SecretIn(variable string) (string, error) {
	file := os.Getenv(variable)
	if file == "" {
		return "", nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", variable, err)
	}
	secret, err := Secret(text)
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %s: %w", variable, file, err)
	case secret == "":
		return "", fmt.Errorf("%s: %s is empty", variable, file)
	}
	return secret, nil
}
