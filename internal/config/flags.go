package config

import (
	"encoding"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ledgerd/ledgerd/internal/flagvalue"
)

// AddFlags defines the flags of the settings that only the server uses.
func AddFlags(command *cobra.Command) {
	flags := command.Flags()
	d := Default()
	addListenFlags(flags)
	flags.Var(&flagvalue.Parsed[string]{Value: new(string), Kind: "URL", Parse: validAs[BaseURL]}, "base-url",
		"URL at which clients reach the server, with the path below which it serves; "+
			"the transparency logs are named by it (LEDGERD_BASE_URL)")
	flags.String("log-key-dir", "", "`folder` with the keys of the transparency logs (LEDGERD_LOG_KEY_DIR)")
	flags.String("log-state-dir", "", "`folder` for what this server signs last, if not --log-key-dir "+
		"(LEDGERD_LOG_STATE_DIR)")
	flags.Var(&flagvalue.Parsed[Size]{Value: new(Size), Text: d.MaxBody.String(), Kind: "SIZE", Parse: ParseSize},
		"max-body", "maximum size of a request body (LEDGERD_MAX_BODY)")

	flags.String("metrics-listen", "", "`address` of metrics, profiles and the log level, or off (LEDGERD_METRICS_LISTEN)")
	addBackupFlags(flags)
	addWebhookFlags(flags)
	addGoneFlags(flags)
	flagvalue.ChoiceVar(command, flags, new(string), "log-level", "", "minimum level to log (LEDGERD_LOG_LEVEL)",
		logLevels()...)
	flagvalue.ChoiceVar(command, flags, new(string), "log-format", "", "log format (LEDGERD_LOG_FORMAT)", logFormats()...)
	flags.Duration("shutdown-delay", d.ShutdownDelay,
		"on shutdown, how long to be not ready but still serve requests (LEDGERD_SHUTDOWN_DELAY)")
}

// addListenFlags defines the flags of how clients connect.
func addListenFlags(flags *pflag.FlagSet) {
	flags.String("listen", Default().Listen,
		"`address`: host:port (port 0 picks a free one), unix:/path or systemd (LEDGERD_LISTEN)")
	flags.String("tls-cert", "", "PEM `file` with the certificate and its chain (LEDGERD_TLS_CERT)")
	flags.String("tls-key", "", "PEM `file` with the key of --tls-cert (LEDGERD_TLS_KEY)")
}

// addBackupFlags defines the flags of the backup settings.
func addBackupFlags(flags *pflag.FlagSet) {
	d := defaultBackup()
	flags.String("backup-folder", "", "`folder` for backups that the server writes (LEDGERD_BACKUP_FOLDER)")
	flags.Var(&flagvalue.Parsed[string]{Value: new(string), Text: d.Every.String(), Kind: "DURATION",
		Parse: validAs[duration]}, "backup-every", "time between two backups (LEDGERD_BACKUP_EVERY)")
	flags.Int("backup-keep", d.Keep, "how many backups are kept (LEDGERD_BACKUP_KEEP)")
}

// addWebhookFlags defines the flags of the webhook settings.
func addWebhookFlags(flags *pflag.FlagSet) {
	d := defaultWebhooks()
	textVar := func(name, kind, text, usage string, parse func(string) (string, error)) {
		flags.Var(&flagvalue.Parsed[string]{Value: new(string), Text: text, Kind: kind, Parse: parse}, "webhooks-"+name,
			fmt.Sprintf("%s (%s)", usage, Variable("webhooks."+strings.ReplaceAll(name, "-", "_"))))
	}

	var schedule []string
	for _, wait := range d.Schedule {
		schedule = append(schedule, wait.String())
	}
	textVar("allowed-networks", "CIDRS", "", "private networks that webhooks may post to, comma-separated",
		validAs[Networks])
	textVar("schedule", "DURATIONS", strings.Join(schedule, ","), "wait before each retry, comma-separated",
		validAs[retrySchedule])
	textVar("timeout", "DURATION", d.Timeout.String(), "how long an attempt may take", validAs[duration])
	textVar("keep", "DURATION", d.Keep.String(), "how long to keep finished deliveries", validAs[duration])
	flags.String("webhooks-proxy", "", "`URL` of an HTTP proxy for webhooks; a password in it is visible to other "+
		"users of this machine: prefer LEDGERD_WEBHOOKS_PROXY")
}

// addGoneFlags defines the flags of settings that were removed, so that for one release it is no error
// to use them.
func addGoneFlags(flags *pflag.FlagSet) {
	for _, name := range []string{
		"shutdown-timeout", "webhooks-connect-timeout", "webhooks-disable-after", "webhooks-in-flight",
		"webhooks-total-in-flight",
	} {
		flags.String(name, "", "has no effect any more")
		_ = flags.MarkHidden(name) // it was defined just now
	}
}

// validAs returns text unchanged, and an error if it is not the text form of a T.
func validAs[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](text string) (string, error) {
	return text, P(new(T)).UnmarshalText([]byte(text))
}
