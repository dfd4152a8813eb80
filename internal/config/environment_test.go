package config

import (
	"strings"
	"testing"
)

// TestCheckEnvironment checks which variables are reported as unknown.
func TestCheckEnvironment(t *testing.T) {
	for name, reported := range map[string]bool{
		"LEDGERD_LISTEN":              false,
		"LEDGERD_LOG_LEVEL":           false,
		"LEDGERD_STREAMS_PER_ORG":     false, // removed
		"LEDGERD_CONFIG":              false,
		"LEDGERD_URL":                 false,
		"LEDGERD_TOKEN":               false,
		"LEDGERD_TOKEN_FILE":          false,
		"LEDGERD_WEBHOOKS_TIMEOUT":    false,
		"LEDGERD_WEBHOOK_SECRET":      false,
		"LEDGERD_WEBHOOK_SECRET_FILE": false,
		"PATH":                        false,
		"LEDGERDS":                    false,
		"LEDGERD_PORT_8080_TCP_ADDR":  false, // by Kubernetes
		"LEDGERD_SERVICE_HOST":        false,
		"LEDGERD_TEST_REQUIRE":        false, // of the tests
		"LEDGERD_LOGLEVEL":            true,
		"LEDGERD_LOG":                 true,
		"LEDGERD_log_level":           true,
		"LEDGERD_LIMITS__REQUESTS":    true,
		"LEDGERD_TOKEN_FILES":         true,
		"LEDGERD_SHUTDOWN_DELAY_MS":   true,
	} {
		err := CheckEnvironment([]string{name + "=x=y", "HOME=/"})
		if got := err != nil; got != reported {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && !strings.Contains(err.Error(), "unknown environment variable "+name+" (") {
			t.Errorf("the error does not name %s: %v", name, err)
		}
	}
}
