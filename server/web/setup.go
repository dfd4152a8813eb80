package web

import (
	"fmt"
	"net/url"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// SetupPath returns the path, below the base path, of the page that creates the first org. It contains the
// page's key, so it is a secret of the host's administrator. The page is closed once an
// org exists.
func (s *Site) SetupPath() string {
	return "/setup?" + url.Values{"key": {s.setup.key}}.Encode()
}

func (s *Site) showSetup(v *page.Visit) (*page.Response, error) {
	key := v.Query("key")
	if err := s.setup.check(v.Ctx(), key); err != nil {
		return nil, err
	}
	return v.Page("setup", "Set up", page.FormPage{Form: page.NewForm("key", key)}), nil
}

// A createdPage shows the admin token, once.
type createdPage struct{ Token ledger.Token }

// setUp creates the org and its admin token, and signs in with it.
func (s *Site) setUp(v *page.Visit) (*page.Response, error) {
	f := v.Form()
	s.setup.mu.Lock()
	defer s.setup.mu.Unlock()
	if err := s.setup.check(v.Ctx(), f.Get("key")); err != nil {
		return nil, err
	}
	org, err := s.setup.host.CreateOrg(v.Ctx(), ledger.NewOrg{Name: f.Get("name")})
	if f.Explain(err) {
		return page.Again(f, v.Page("setup", "Set up", page.FormPage{Form: f})), nil
	}
	if err != nil {
		return nil, err
	}

	token, err := s.setup.host.CreateToken(v.Ctx(), org.Name, ledger.NewToken{Name: "first admin", Scope: ledger.Admin})
	if err != nil {
		return nil, fmt.Errorf("created org %s, but not its token (run ledgerd token create): %w", org.Name,
			err)
	}
	secret, expires, err := s.api.SignIn(v.Ctx(), token.Secret)
	if err != nil {
		return nil, err
	}
	v.Session, v.Org = &token, org.Name
	resp := v.Page("created", "Created org "+org.Name, createdPage{token})
	resp.Cookies = append(resp.Cookies, s.cookies.New(v.Request, secret, expires))
	return resp, nil
}
