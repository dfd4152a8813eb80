package flagvalue

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// Limit returns a flag value that accepts a number of 1 or more.
func Limit(value *int) pflag.Value {
	return &Parsed[int]{Value: value, Kind: "N", Parse: func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return 0, errors.New("use a number of 1 or more")
		}
		return n, nil
	}}
}

// Predicates returns a flag value that accepts a list of patterns of predicates.
func Predicates(value *identity.Predicates) pflag.Value {
	return &Parsed[identity.Predicates]{Value: value, Kind: "PATTERNS", Parse: parsePredicates}
}

// IdentityLimits defines --may and --dn-pattern.
func IdentityLimits(command *cobra.Command, may *identity.Predicates, dnPattern *string) {
	command.Flags().Var(Predicates(may), "may",
		"predicates that the signer may attest, comma-separated, such as 'test:*,build:docker'; '*': every predicate")
	command.Flags().StringVar(dnPattern, "dn-pattern", "",
		"`pattern` of the subjects that a root certifies, such as 'ou=build,o=acme'; empty: every subject")
}

// parsePredicates refuses empty patterns: the ledger takes an empty list for all predicates.
func parsePredicates(s string) (identity.Predicates, error) {
	patterns := strings.Split(s, ",")
	for i := range patterns {
		if patterns[i] = strings.TrimSpace(patterns[i]); patterns[i] == "" {
			return nil, errors.New("use patterns such as test:*,build:docker, or * for every predicate")
		}
	}
	return patterns, nil
}

// StateVar defines --state, which accepts a state in upper or lower case.
func StateVar(command *cobra.Command, value *ledger.State, name, usage string) {
	parse := func(s string) (ledger.State, error) { return ledger.ParseState(strings.ToUpper(s)) }
	command.Flags().Var(&Parsed[ledger.State]{Value: value, Kind: "STATE", Parse: parse}, name, usage)
	var names []string
	for _, s := range ledger.States() {
		names = append(names, s.String())
	}
	Complete(command, name, names...)
}

// ResultVar defines --status, which accepts the statuses that a statement of the ledger's
// own type can report.
func ResultVar(command *cobra.Command, value *ledger.Status, usage string) {
	statusVar(command, value, usage, slices.DeleteFunc(ledger.Statuses(),
		func(s ledger.Status) bool { return s == ledger.Recorded }))
}

// StatusVar defines --status, which accepts every status.
func StatusVar(command *cobra.Command, value *ledger.Status, usage string) {
	statusVar(command, value, usage, ledger.Statuses())
}

func statusVar(command *cobra.Command, value *ledger.Status, usage string, allowed []ledger.Status) {
	var names []string
	for _, s := range allowed {
		names = append(names, string(s))
	}
	command.Flags().Var(Choice((*string)(value), names...), "status", usage)
	Complete(command, "status", names...)
}

// LevelVar defines a flag that accepts a level of overlaps.
func LevelVar(command *cobra.Command, value *radar.Level, name, usage string) {
	parse := func(s string) (radar.Level, error) {
		level, err := radar.ParseLevel(strings.ToUpper(s))
		if err != nil || level == radar.NoLevel {
			return level, errors.New("use LOW, MEDIUM or HIGH")
		}
		return level, nil
	}
	command.Flags().Var(&Parsed[radar.Level]{Value: value, Kind: "LEVEL", Parse: parse}, name, usage)
	Complete(command, name, "LOW", "MEDIUM", "HIGH")
}
