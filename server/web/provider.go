package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/ledgerd/ledgerd/internal/idp"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/server/internal/wire"
	"github.com/ledgerd/ledgerd/server/web/form"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// maxAge is the highest max_age of a sign-in in seconds.
const maxAge = 900

// providerOf returns the provider in the path of a request.
func (s *Site) providerOf(v *page.Visit) (*idp.Provider, error) {
	name := v.Value("provider")
	p := s.providers.Find(name)
	if p == nil {
		return nil, ledger.Errorf(ledger.CodeNotFound, "no provider %.40q to sign in with", name)
	}
	return p, nil
}

// beginSignIn redirects a person to a provider.
func (s *Site) beginSignIn(v *page.Visit) (*page.Response, error) {
	p, err := s.providerOf(v)
	if err != nil {
		return nil, err
	}
	r, err := s.requestOf(v)
	if err != nil {
		return nil, err
	}
	flow, location, err := p.Begin(v.Ctx(), r)
	if err != nil {
		return s.refuse(v, r, err)
	}
	resp := page.SeeOther(location)
	resp.Cookies = append(resp.Cookies, s.flows.New(v.Request, flow.Encode(), v.Now().Add(idp.FlowLife)))
	return resp, nil
}

// requestOf parses the query of a link to sign in.
func (s *Site) requestOf(v *page.Visit) (r idp.Request, err error) {
	r.Next, r.Org = s.localPath(v.Query("next")), v.Query("org")
	if r.Org != "" {
		if err := ledger.CheckOrg(r.Org); err != nil {
			return r, ledger.Errorf(ledger.CodeInvalidParameter, "invalid org: %v", err)
		}
	}
	text := v.Query("max_age")
	if text == "" {
		return r, nil
	}
	seconds, err := strconv.ParseUint(text, 10, 16)
	if err != nil || seconds > maxAge {
		return r, ledger.Errorf(ledger.CodeInvalidParameter, "invalid max_age %.20q: use 0 to %d seconds", text, maxAge)
	}
	r.MaxAge = new(int(seconds))
	return r, nil
}

// finishSignIn signs in the person whom a provider has sent back. The browser deletes the cookie of the
// sign-in even if an error occurs, since a code counts once.
func (s *Site) finishSignIn(v *page.Visit) (*page.Response, error) {
	for _, c := range s.flows.Expired() {
		http.SetCookie(v.Writer, c) // in the response, an error page would lack it
	}
	p, err := s.providerOf(v)
	if err != nil {
		return nil, err
	}
	flow, err := idp.ParseFlow(s.flows.Secret(v.Request))
	if err != nil {
		return s.refuse(v, idp.Request{}, err)
	}
	account, err := p.Finish(v.Ctx(), flow, v.Request.URL.Query())
	if err != nil {
		return s.refuse(v, flow.Request, err)
	}

	org := flow.Org
	if org == "" {
		orgs, err := s.api.OrgsOf(v.Ctx(), account)
		if err != nil {
			return nil, err
		}
		if len(orgs) > 1 {
			return s.chooseOrg(v, p, flow.Request, orgs), nil
		}
		if len(orgs) == 0 {
			return s.refuseAccount(v, flow.Request, account, "this account may not sign in to any org")
		}
		org = orgs[0]
	}
	return s.signInMember(v, flow, org, account)
}

// signInMember starts a session of a member.
func (s *Site) signInMember(v *page.Visit, flow idp.Flow, org string, account member.Account) (*page.Response, error) {
	secret, expires, err := s.api.SignInMember(v.Ctx(), org, account, flow.StateHash())
	if e, ok := errors.AsType[*ledger.Error](err); ok &&
		(e.Code == ledger.CodeForbidden || e.Code == ledger.CodeAlreadyExists) {
		return s.refuseAccount(v, flow.Request, account, e.Detail)
	}
	if err != nil {
		return s.refuse(v, flow.Request, err)
	}
	cookies := s.cookies
	cookies.HTTPS = s.flows.HTTPS // the request comes by a link
	return s.begun(v, cookies.New(v.Request, secret, expires), flow.Next)
}

// refuseAccount is like refuse, for an account that may not sign in. The message is the same whether
// or not the org exists.
func (s *Site) refuseAccount(v *page.Visit, r idp.Request, a member.Account, reason string) (*page.Response, error) {
	return s.refuse(v, r, ledger.Errorf(ledger.CodeUnauthenticated, "%s: an admin can add it as a member, with the "+
		"issuer %s and the subject %s", reason, a.Issuer, a.Subject))
}

// refuse shows the sign-in page again after a sign-in with a provider has failed, and counts that.
func (s *Site) refuse(v *page.Visit, r idp.Request, err error) (*page.Response, error) {
	err = s.api.CountFailure(v.Writer.Header(), v.Request.RemoteAddr, err)
	e, ok := errors.AsType[*ledger.Error](err)
	if !ok {
		return nil, err
	}
	switch e.Code {
	case ledger.CodeUnauthenticated, ledger.CodeTooManyRequests, ledger.CodeIssuerUnavailable:
	default:
		return nil, err
	}

	f := form.New("next", cmp.Or(r.Next, s.base+"/"), "org", r.Org)
	if r.MaxAge != nil {
		f.Values.Set("max_age", strconv.Itoa(*r.MaxAge))
	}
	f.Problem, f.Status = e.Detail, wire.StatusOf(e)
	return page.Again(f, s.loginPage(v, loginPage{Form: f})), nil
}

// An orgsPage lets a person choose the org to sign in to.
type orgsPage struct {
	Label string // of the provider
	Orgs  []orgLink
}

// An orgLink signs in to an org.
type orgLink struct{ Name, Path string }

// chooseOrg shows the orgs that admit a person. Each link begins a new sign-in, since a code counts
// once; the provider usually does not ask again.
func (s *Site) chooseOrg(v *page.Visit, p *idp.Provider, r idp.Request, orgs []string) *page.Response {
	data := orgsPage{Label: p.Label()}
	for _, org := range orgs {
		query := url.Values{"org": {org}, "next": {r.Next}}
		if r.MaxAge != nil {
			query.Set("max_age", fmt.Sprint(*r.MaxAge))
		}
		path := page.WithQuery(s.base+withPattern+page.PathTo(p.Name()), query)
		data.Orgs = append(data.Orgs, orgLink{org, path})
	}
	return v.Page("login-orgs", "Choose an org", data)
}
