package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/ledgerd/ledgerd/internal/idp"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/server/internal/wire"
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

	offers, err := s.api.Offers(v.Ctx(), account)
	if err != nil {
		return nil, err
	}
	if flow.Org != "" {
		offers = slices.DeleteFunc(offers, func(o member.Offer) bool { return o.Org != flow.Org })
	}
	switch {
	case len(offers) == 1 && !offers[0].Joins:
		return s.signInMember(v, flow, offers[0].Org, account)
	case len(offers) > 0:
		return s.chooseOrg(v, p, flow, account, offers), nil
	case flow.Org != "":
		return s.signInMember(v, flow, flow.Org, account) // ends a membership by a rule
	}
	return s.refuseAccount(v, flow.Request, account, "this account may not sign in to any org")
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

	f := page.NewForm("next", cmp.Or(r.Next, s.base+"/"), "org", r.Org)
	if r.MaxAge != nil {
		f.Values.Set("max_age", strconv.Itoa(*r.MaxAge))
	}
	f.Problem, f.Status = e.Detail, wire.StatusOf(e)
	return page.Again(f, s.loginPage(v, loginPage{Form: f})), nil
}

// maxJoining is the maximum number of sign-ins that wait until the person agrees to join an org. Each takes at
// most the memory of an ID token.
const maxJoining = 200

// A joining is a sign-in that waits until the person agrees to join an org.
type joining struct {
	flow    idp.Flow
	account member.Account
}

// An orgsPage lets a person choose the org to sign in to.
type orgsPage struct {
	Label   string // of the provider
	Account member.Account
	Orgs    []orgLink
	Joins   []member.Offer
	// Key is that of the sign-in, for the forms that join an org.
	Key string
}

// An orgLink signs in to an org.
type orgLink struct{ Name, Path string }

// chooseOrg shows the orgs that admit a person. Each link begins a new sign-in, since a code counts
// once; the provider usually does not ask again. To join an org, the person sends a form, which completes
// this one.
func (s *Site) chooseOrg(
	v *page.Visit, p *idp.Provider, flow idp.Flow, account member.Account, offers []member.Offer,
) *page.Response {
	data := orgsPage{Label: p.Label(), Account: account}
	for _, offer := range offers {
		if offer.Joins {
			data.Joins = append(data.Joins, offer)
			continue
		}
		query := url.Values{"org": {offer.Org}, "next": {flow.Next}}
		if flow.MaxAge != nil {
			query.Set("max_age", fmt.Sprint(*flow.MaxAge))
		}
		path := page.WithQuery(s.base+withPattern+page.PathTo(p.Name()), query)
		data.Orgs = append(data.Orgs, orgLink{offer.Org, path})
	}
	if len(data.Joins) > 0 {
		data.Key = s.joining.Add(joining{flow, account}, idp.FlowLife)
	}
	return v.Page("login-orgs", "Choose an org", data)
}

// joinOrg signs in a person who has agreed to join an org.
func (s *Site) joinOrg(v *page.Visit) (*page.Response, error) {
	f := v.Form()
	org := f.Get("org")
	if err := ledger.CheckOrg(org); err != nil {
		return nil, ledger.Errorf(ledger.CodeInvalidParameter, "invalid org: %v", err)
	}
	j, ok := s.joining.Take(f.Get("key"))
	if !ok {
		return s.refuse(v, idp.Request{Org: org}, ledger.Errorf(ledger.CodeUnauthenticated,
			"the page is more than %d minutes old, or was used: start again", idp.FlowLife/time.Minute))
	}
	j.account.Consent = org
	return s.signInMember(v, j.flow, org, j.account)
}
