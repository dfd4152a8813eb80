package config

import "strings"

// listKeys are the keys that take a list.
func listKeys() []string { return []string{"webhooks.allowed_networks", "webhooks.schedule"} }

// flagOf returns the name of the flag of a key; not every command has it.
func flagOf(key string) string { return strings.NewReplacer(".", "-", "_", "-").Replace(key) }

// Variable returns the environment variable of a key.
func Variable(key string) string {
	return "LEDGERD_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}
