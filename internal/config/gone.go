package config

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/pflag"
)

// gone returns the settings that were removed, and why. For one release it is no error to set one:
// the log of the server says that it has no effect. Delete them here after the next release.
func gone() map[string]string {
	const (
		constant  = "it is a constant (see docs/limits.md)"
		noWitness = "ledgerd no longer cosigns the logs of others (see docs/witness.md)"
	)
	return map[string]string{
		"limits.failed_sign_ins":   constant,
		"log.witness_networks":     "witnesses of log.policy may be in private networks",
		"no_copy":                  "give the command the flag --no-copy",
		"receipts.valid_for":       constant,
		"shutdown_timeout":         "it is 15s (see docs/reliability.md)",
		"streams.per_org":          constant,
		"streams.per_token":        constant,
		"tls.email":                "certificate authorities send no mail before a certificate expires",
		"webhooks.connect_timeout": constant,
		"webhooks.disable_after":   constant,
		"webhooks.in_flight":       constant,
		"webhooks.total_in_flight": constant,
		"witness.logs":             noWitness,
		"witness.name":             noWitness,
	}
}

// goneKeys returns the keys of the settings that were removed.
func goneKeys() []string { return slices.Sorted(maps.Keys(gone())) }

// goneNote says that a setting that was removed is set, and where.
func goneNote(key, where string) string {
	return fmt.Sprintf("setting %s (%s) has no effect any more: %s", key, where, gone()[key])
}

// goneOutside returns notes about settings that were removed and are set in the environment, or by
// flags. A flag that is to be accepted stays defined, hidden.
func goneOutside(flags *pflag.FlagSet) (notes []string) {
	for _, key := range goneKeys() {
		if os.Getenv(Variable(key)) != "" {
			notes = append(notes, goneNote(key, Variable(key)))
		}
		if flag := flags.Lookup(flagOf(key)); flag != nil && flag.Hidden && flag.Changed {
			notes = append(notes, goneNote(key, "--"+flag.Name))
		}
	}
	return notes
}
