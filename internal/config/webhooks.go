package config

import (
	"bufio"
	"io"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

// Webhooks holds the settings of webhooks.
type Webhooks struct {
	AllowedNetworks Networks      `mapstructure:"allowed_networks" yaml:"allowed_networks,flow"`
	Schedule        retrySchedule `mapstructure:"schedule" yaml:"schedule,flow"`
	Timeout         duration      `mapstructure:"timeout" yaml:"timeout"`
	Keep            duration      `mapstructure:"keep" yaml:"keep"`
	Proxy           proxyURL      `mapstructure:"proxy" yaml:"proxy"`
	// SecretsKey is the file with the keys that encrypt the signing secrets; see
	// [Webhooks.LoadSecretKeys].
	SecretsKey string `mapstructure:"secrets_key" yaml:"secrets_key"`
}

func defaultWebhooks() Webhooks {
	var schedule retrySchedule
	for _, d := range dispatch.DefaultSchedule() {
		schedule = append(schedule, duration(d))
	}
	return Webhooks{
		Schedule: schedule,
		Timeout:  duration(15 * time.Second),
		Keep:     duration(store.DefaultKeepDeliveries),
	}
}

// Guard returns a guard that refuses to post to private networks that are not allowed.
func (s Webhooks) Guard() *dispatch.Guard { return dispatch.NewGuard(s.AllowedNetworks) }

// LoadSecretKeys reads the file with the keys that encrypt the signing secrets. Without a file
// there are no keys. Others must not have access to the file.
func (s Webhooks) LoadSecretKeys() (keys store.SecretKeys, err error) {
	const setting = "webhooks.secrets_key"
	if s.SecretsKey == "" {
		return keys, nil
	}
	return loadPrivate(setting, s.SecretsKey, func(r io.Reader) (store.SecretKeys, error) {
		text := bufio.NewReader(r)
		if err := skipMark(text); err != nil {
			return store.SecretKeys{}, err
		}
		return store.ReadSecretKeys(text)
	})
}

// skipMark skips a byte order mark at the start of a text. It returns an error if the text is not UTF-8.
func skipMark(text *bufio.Reader) error {
	start, _ := text.Peek(len("\ufeff")) // an error is returned by the next read, too
	rest, err := ledger.UTF8(start)
	if err != nil {
		return err
	}
	_, err = text.Discard(len(start) - len(rest))
	return err
}

// check calls invalid for each setting that is invalid.
func (s Webhooks) check(invalid func(key, format string, args ...any)) {
	within := func(key string, d, low, high duration) bool {
		if d < low || d > high {
			invalid("webhooks."+key, "%v is out of range (use %v to %v)", d, low, high)
			return false
		}
		return true
	}

	if len(s.Schedule) == 0 {
		invalid("webhooks.schedule", "empty: use at least one duration, such as 5s")
	}
	minKeep := duration(day)
	for _, d := range s.Schedule {
		if within("schedule", d, duration(time.Second), duration(30*day)) {
			minKeep += d
		}
	}

	within("timeout", s.Timeout, duration(time.Second), duration(2*time.Minute))
	if within("keep", s.Keep, duration(day), duration(3650*day)) && s.Keep < minKeep {
		invalid("webhooks.keep", "%v is too short: webhooks.schedule requires at least %v", s.Keep, minKeep)
	}
}
