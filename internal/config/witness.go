package config

import (
	"errors"
	"fmt"
	"os"

	"github.com/ledgerd/ledgerd/ledger/proof/trustpolicy"
	"github.com/ledgerd/ledgerd/webhook/dispatch"
)

// LoadPolicy reads the file with the witnesses that cosign the logs. It returns nil if none
// is set.
func (l Log) LoadPolicy() (*trustpolicy.Policy, error) {
	return load("log.policy", l.Policy, trustpolicy.Parse)
}

// Guard returns a guard that refuses to connect to witnesses in private networks that are not
// allowed.
func (l Log) Guard() *dispatch.Guard {
	return dispatch.NewGuard(l.WitnessNetworks).For("log.witness_networks")
}

// LoadLogs reads the file with the keys of the logs that the witness cosigns. It returns nil
// if none is set.
func (w Witness) LoadLogs() ([]trustpolicy.Log, error) {
	return load("witness.logs", w.Logs, trustpolicy.ParseLogs)
}

// load parses the file that a setting names.
func load[T any](setting, file string, parse func([]byte) (T, error)) (v T, err error) {
	if file == "" {
		return v, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return v, fmt.Errorf("read %s: %w", setting, err)
	}
	if v, err = parse(text); err != nil {
		return v, fmt.Errorf("invalid %s: %s: %w", setting, file, err)
	}
	return v, nil
}

// WitnessName returns the name of the witness's key.
func (s Settings) WitnessName() (string, error) {
	if s.Witness.Name != "" {
		return s.Witness.Name, nil
	}
	u := s.BaseURL.URL()
	if u == nil {
		return "", errors.New("witness.name is not set (set it or base_url)")
	}
	return u.Host + u.EscapedPath() + "/v1/witness", nil
}

// CheckFiles reads the files that settings name, and returns their errors.
func (s Settings) CheckFiles() error {
	_, policy := s.Log.LoadPolicy()
	_, logs := s.Witness.LoadLogs()
	var name error
	if s.Witness.Logs != "" {
		_, name = s.WitnessName()
	}
	_, keys := s.Webhooks.LoadSecretKeys()
	_, providers := s.SignIn.LoadProviders(s.BaseURL)
	return errors.Join(policy, logs, name, keys, providers)
}
