package config

import "strings"

// listKeys returns the keys whose values are lists.
func listKeys() []string {
	return []string{
		"oidc.allowed_networks", "tls.domains", "trusted_proxies", "webhooks.allowed_networks",
		"webhooks.schedule",
	}
}

// flagOf returns the name of a key's flag. Not every command has this flag.
func flagOf(key string) string { return strings.NewReplacer(".", "-", "_", "-").Replace(key) }

// Variable returns the environment variable of a key, such as LEDGERD_LOG_LEVEL for
// log.level.
func Variable(key string) string {
	return "LEDGERD_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}
