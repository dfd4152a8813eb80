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

// CheckEnvironment reports the variables whose names begin with LEDGERD_ and that
// nothing reads.
func CheckEnvironment(environment []string) error {
	v, err := newViper()
	if err != nil {
		return err
	}
	known := []string{"LEDGERD_CONFIG", "LEDGERD_URL", "LEDGERD_TOKEN", "LEDGERD_TOKEN_FILE", WebhookSecretVariable,
		WebhookSecretVariable + "_FILE"}
	for _, key := range v.AllKeys() {
		known = append(known, Variable(key))
	}
	var problems []error
	for _, entry := range environment {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "LEDGERD_") || slices.Contains(known, name) || ofKubernetes(name) {
			continue
		}
		problems = append(problems, fmt.Errorf("environment: nothing reads %s; the variables are %s", name, listed(known)))
	}
	return errors.Join(problems...)
}

// ofKubernetes tells whether a variable is one of those that Kubernetes sets
// in every container beside a service of the name ledgerd.
func ofKubernetes(name string) bool {
	return name == "LEDGERD_PORT" || strings.HasPrefix(name, "LEDGERD_PORT_") ||
		strings.HasPrefix(name, "LEDGERD_SERVICE_")
}
