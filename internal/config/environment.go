package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// WebhookSecretVariable is the environment variable that holds a webhook's signing
// secret. With _FILE appended, it names a file that holds the secret.
const WebhookSecretVariable = "LEDGERD_WEBHOOK_SECRET"

// testPrefix begins the names of variables that the tests of ledgerd read, not the program.
const testPrefix = "LEDGERD_TEST_"

// CheckEnvironment reports unknown variables whose names begin with LEDGERD_.
// environment has the form of os.Environ.
func CheckEnvironment(environment []string) error {
	v, err := newViper()
	if err != nil {
		return err
	}
	known := []string{"LEDGERD_CONFIG", "LEDGERD_URL", "LEDGERD_TOKEN", "LEDGERD_TOKEN_FILE", "LEDGERD_REPO",
		"LEDGERD_CI", WebhookSecretVariable, WebhookSecretVariable + "_FILE"}
	for _, key := range v.AllKeys() {
		known = append(known, Variable(key))
	}
	var problems []error
	for _, entry := range environment {
		name, _, _ := strings.Cut(entry, "=")
		isGone := slices.ContainsFunc(goneKeys(), func(key string) bool { return Variable(key) == name })
		if !strings.HasPrefix(name, "LEDGERD_") || slices.Contains(known, name) || setByKubernetes(name) || isGone ||
			strings.HasPrefix(name, testPrefix) {
			continue
		}
		problems = append(problems, fmt.Errorf("unknown environment variable %s (use %s)", name, joinSorted(known)))
	}
	return errors.Join(problems...)
}

// setByKubernetes reports whether Kubernetes sets a variable in every container of a
// namespace that has a service named ledgerd.
func setByKubernetes(name string) bool {
	return name == "LEDGERD_PORT" || strings.HasPrefix(name, "LEDGERD_PORT_") ||
		strings.HasPrefix(name, "LEDGERD_SERVICE_")
}
