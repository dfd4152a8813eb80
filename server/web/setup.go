package web

import (
	"fmt"
	"net/url"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/form"
	"github.com/ledgerd/ledgerd/server/web/session"
)

// SetupPath returns the path of the page that creates the first org. It contains the
// page's key, so it is a secret of the host's administrator. The page is closed once an
// org exists.
func (s *Site) SetupPath() string {
	return "/setup?" + url.Values{"key": {s.setup.key}}.Encode()
}

func showSetup(v *visit) (*response, error) {
	key := v.query("key")
	if err := v.site.setup.check(v.ctx(), key); err != nil {
		return nil, err
	}
	return v.page("setup", "Set up", formPage{form.New("key", key)}), nil
}

// A createdPage shows the admin token, once.
type createdPage struct{ Token ledger.Token }

// setUp creates the org and its admin token, and signs in with it.
func setUp(v *visit) (*response, error) {
	f, err := v.form()
	if err != nil {
		return nil, err
	}

	s := v.site.setup
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(v.ctx(), f.Get("key")); err != nil {
		return nil, err
	}
	org, err := s.host.CreateOrg(v.ctx(), ledger.NewOrg{Name: f.Get("name")})
	if f.Explain(err) {
		return again(f, v.page("setup", "Set up", formPage{f})), nil
	}
	if err != nil {
		return nil, err
	}

	token, err := s.host.CreateToken(v.ctx(), org.Name, ledger.NewToken{Name: "first admin", Scope: ledger.Admin})
	if err != nil {
		return nil, fmt.Errorf("created org %s, but not its token (run ledgerd token create): %w", org.Name,
			err)
	}
	secret, expires, err := v.site.api.SignIn(v.ctx(), token.Secret)
	if err != nil {
		return nil, err
	}
	v.session, v.org = &token, org.Name
	resp := v.page("created", "Created org "+org.Name, createdPage{token})
	resp.cookies = append(resp.cookies, session.Cookie(v.r, secret, expires))
	return resp, nil
}
