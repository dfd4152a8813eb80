package config

import (
	"encoding"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ledgerd/ledgerd/internal/flagvalue"
)

// AddFlags defines the flags of the settings that only a server has.
func AddFlags(command *cobra.Command) {
	flags := command.Flags()
	d := Default()
	flags.String("listen", d.Listen, "`address` to listen on; port 0 takes a free one (LEDGERD_LISTEN)")
	flags.Var(&flagvalue.Parsed[Size]{Value: new(Size), Text: d.MaxBody.String(), Kind: "SIZE", Parse: ParseSize},
		"max-body", "largest request body that is read (LEDGERD_MAX_BODY)")
	addWebhookFlags(flags)
	flagvalue.ChoiceVar(command, flags, new(string), "log-level", "", "least level that is logged (LEDGERD_LOG_LEVEL)",
		logLevels()...)
	flagvalue.ChoiceVar(command, flags, new(string), "log-format", "", "how to log (LEDGERD_LOG_FORMAT)", logFormats()...)
	flags.Duration("shutdown-timeout", d.ShutdownTimeout,
		"how long a stop waits for requests, then for webhooks, to finish (LEDGERD_SHUTDOWN_TIMEOUT)")
}

// addWebhookFlags defines the flags of the settings of webhooks.
func addWebhookFlags(flags *pflag.FlagSet) {
	d := defaultWebhooks()
	textVar := func(name, kind, text, usage string, parse func(string) (string, error)) {
		flags.Var(&flagvalue.Parsed[string]{Value: new(string), Text: text, Kind: kind, Parse: parse}, "webhooks-"+name,
			fmt.Sprintf("%s (%s)", usage, Variable("webhooks."+strings.ReplaceAll(name, "-", "_"))))
	}
	var times []string
	for _, t := range d.Schedule {
		times = append(times, t.String())
	}
	textVar("allowed-networks", "CIDRS", "", "private networks that webhooks may post to, with commas between them",
		readsAs[Networks])
	textVar("schedule", "DURATIONS", strings.Join(times, ","), "how long to wait before each try after the first",
		readsAs[schedule])
	textVar("timeout", "DURATION", d.Timeout.String(), "how long a receiver may take to answer", readsAs[duration])
	textVar("connect-timeout", "DURATION", d.ConnectTimeout.String(), "how long connecting to a receiver may take",
		readsAs[duration])
	flags.Int("webhooks-in-flight", d.InFlight,
		"how many requests to one webhook run at once (LEDGERD_WEBHOOKS_IN_FLIGHT)")
	flags.Int("webhooks-total-in-flight", d.TotalInFlight,
		"how many requests to all webhooks run at once (LEDGERD_WEBHOOKS_TOTAL_IN_FLIGHT)")
	textVar("disable-after", "DURATION", d.DisableAfter.String(), "how long a webhook may only fail before it is disabled",
		readsAs[duration])
	textVar("keep", "DURATION", d.Keep.String(), "how long deliveries are kept to be looked at", readsAs[duration])
	flags.String("webhooks-proxy", "", "`URL` of an HTTP proxy through which webhooks post (LEDGERD_WEBHOOKS_PROXY)")
}

// readsAs returns the text of a flag if it is that of a T.
func readsAs[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](text string) (string, error) {
	return text, P(new(T)).UnmarshalText([]byte(text))
}
