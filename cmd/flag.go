package cmd

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ledgerd/ledgerd/internal/flagvalue"
	"github.com/ledgerd/ledgerd/ledger"
)

// stateFlag defines --state.
func stateFlag(command *cobra.Command, value *ledger.State, usage string) {
	command.Flags().Var(&flagvalue.Parsed[ledger.State]{Value: value, Kind: "STATE", Parse: ledger.ParseState}, "state", usage)
	var names []string
	for _, s := range ledger.States() {
		names = append(names, s.String())
	}
	flagvalue.Complete(command, "state", names...)
}

// parseExpiry returns what reads when something ends: after a duration such as
// 90d, or at a date or date-time.
func parseExpiry(now time.Time) func(string) (ledger.Time, error) {
	return func(s string) (ledger.Time, error) {
		if d, err := ledger.ParseDuration(s); err == nil {
			return ledger.TimeOf(now.Add(d.Std())), nil
		}
		t, err := ledger.ParseSince(s)
		if err != nil {
			return 0, fmt.Errorf("use a duration such as 90d or 12h, a date or an RFC 3339 date-time")
		}
		return t, nil
	}
}

// require makes flags obligatory. The error it passes over is that of a flag
// which is not there, and its callers have just defined them.
func require(command *cobra.Command, flags ...string) {
	for _, name := range flags {
		_ = command.MarkFlagRequired(name)
	}
}

// limitFlag defines --limit, of lists that can be long.
func limitFlag(command *cobra.Command, limit *int) {
	command.Flags().Var(&flagvalue.Parsed[int]{Value: limit, Kind: "N", Parse: func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return 0, fmt.Errorf("use a number of 1 or more")
		}
		return n, nil
	}}, "limit", "no more than so many (default all)")
}

func statuses() []string {
	return []string{string(ledger.Pass), string(ledger.Warn), string(ledger.Fail), string(ledger.Errored), string(ledger.Skip)}
}

func statusFlag(value *ledger.Status) pflag.Value {
	return flagvalue.Choice((*string)(value), statuses()...)
}
