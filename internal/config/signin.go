package config

import (
	"errors"

	"github.com/ledgerd/ledgerd/internal/idp"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/ledger/passkey"
)

// SignIn holds the settings of how people sign in, in addition to API tokens.
type SignIn struct {
	// Providers is the file with the OpenID Connect providers; see [SignIn.LoadProviders].
	Providers string `mapstructure:"providers" yaml:"providers"`
	// RPID is the domain of passkeys. If it is empty, members cannot use passkeys.
	RPID string `mapstructure:"rp_id" yaml:"rp_id"`
}

// Party returns the domain and the origin of passkeys; both are empty if RPID is. base is the
// setting base_url.
func (s SignIn) Party(base BaseURL) (passkey.Party, error) {
	switch {
	case s.RPID == "":
		return passkey.Party{}, nil
	case base == "":
		return passkey.Party{}, errors.New("base_url is not set, which says where the pages are that use passkeys")
	}
	return passkey.NewParty(s.RPID, string(base))
}

// LoadProviders reads the file with the providers. If the setting is empty, it returns nil. base is
// the setting base_url. A file to which other users have access is an error, since it has secrets.
func (s SignIn) LoadProviders(base BaseURL) ([]idp.Config, error) {
	if s.Providers == "" {
		return nil, nil
	}
	switch {
	case base == "":
		return nil, errors.New("sign_in.providers requires base_url: providers send people back to this URL")
	case member.CheckIssuer(string(base)) != nil:
		return nil, errors.New("sign_in.providers requires a base_url with https:// (http:// is only allowed for this " +
			"machine)")
	}
	return loadPrivate("sign_in.providers", s.Providers, idp.Read)
}
