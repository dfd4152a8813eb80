package server

import (
	"net/http"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/ca"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/review"
	"github.com/ledgerd/ledgerd/server/internal/reviews"
	"github.com/ledgerd/ledgerd/store"
)

func (s *Server) listIdentities(c *call) (*reply, error) { return listOfOrg(c, s.store.Identities) }

func (s *Server) addIdentity(c *call) (*reply, error) {
	var n identity.NewIdentity
	if err := c.decode(&n, smallBody); err != nil {
		return nil, err
	}
	identity, err := n.Identity()
	if err != nil {
		return nil, err
	}
	if err := attestation.CheckMay(identity.May); err != nil {
		return nil, err
	}
	if identity, err = s.store.AddIdentity(c.ctx(), c.org(), identity); err != nil {
		return nil, err
	}
	return created(identity, identityURL(identity.Org, identity.ID)), nil
}

func (s *Server) getIdentity(c *call) (*reply, error) {
	return single(s.store.Identity(c.ctx(), c.org(), c.id()))
}

func (s *Server) changeIdentity(c *call) (*reply, error) {
	var change identity.Change
	if err := c.decode(&change, smallBody); err != nil {
		return nil, err
	}
	if change.May != nil {
		if err := attestation.CheckMay(*change.May); err != nil {
			return nil, err
		}
	}
	return shown(s.store.ChangeIdentity(c.ctx(), c.org(), c.id(), change))
}

func (s *Server) revokeIdentity(c *call) (*reply, error) {
	since, err := parse(c, "since", ledger.ParseSince)
	if err != nil {
		return nil, err
	}
	if since == 0 {
		return deleted(s.store.RevokeIdentity(c.ctx(), c.org(), c.id()))
	}
	return deleted(s.store.DistrustIdentity(c.ctx(), c.org(), c.id(), since))
}

func (s *Server) listTrustedRoots(c *call) (*reply, error) { return listOfOrg(c, s.store.TrustedRoots) }

func (s *Server) getTrustedRoot(c *call) (*reply, error) {
	version, err := parse(c, "version", policyVersion)
	if err != nil {
		return nil, err
	}
	return single(s.store.TrustedRoot(c.ctx(), c.org(), c.path.ByName("name"), version))
}

func (s *Server) putTrustedRoot(c *call) (*reply, error) {
	document, err := c.body(identity.MaxTrustedRoot, typeJSON)
	if err != nil {
		return nil, err
	}
	return s.setTrustedRoot(c, document)
}

func (s *Server) removeTrustedRoot(c *call) (*reply, error) {
	_, err := s.setTrustedRoot(c, nil)
	return deleted(err)
}

// setTrustedRoot makes a document the next version of a trusted root; without one, it removes it.
func (s *Server) setTrustedRoot(c *call, document []byte) (*reply, error) {
	return shown(s.store.SetTrustedRoot(c.ctx(), c.org(), c.path.ByName("name"), document))
}

// getCA returns the handler for the root of an org's CA.
func (s *Server) getCA(p ca.Purpose) func(*call) (*reply, error) {
	return func(c *call) (*reply, error) {
		return single(s.store.CA(c.ctx(), c.org(), p))
	}
}

func (s *Server) createCA(p ca.Purpose) func(*call) (*reply, error) {
	return func(c *call) (*reply, error) {
		if err := s.checkAuthority(); err != nil {
			return nil, err
		}
		var n ca.NewAuthority
		if err := c.decode(&n, smallBody); err != nil {
			return nil, err
		}
		root, err := s.config.Authority.Create(c.ctx(), c.org(), p, n)
		if err != nil {
			return nil, err
		}
		return created(root, identityURL(root.Org, root.ID)), nil
	}
}

func (s *Server) retireCA(p ca.Purpose) func(*call) (*reply, error) {
	return func(c *call) (*reply, error) { return deleted(s.store.RetireCA(c.ctx(), c.org(), p)) }
}

// maxCertificateRequest is the maximum size of a request for a certificate, in bytes.
const maxCertificateRequest = 32 << 10

// issueCertificate issues a certificate to a CI job. Callers need no API token, so they are limited
// by their address, as in exchangeToken.
func (s *Server) issueCertificate(c *call) (*reply, error) {
	if err := s.countRequest(c); err != nil {
		return nil, err
	}
	if err := s.checkAuthority(); err != nil {
		return nil, err
	}
	var n ca.NewCertificate
	if err := c.decode(&n, maxCertificateRequest); err != nil {
		return nil, err
	}
	key, err := ca.ParseRequest(n.CSR)
	if err != nil {
		return nil, err
	}

	rule, claims, err := s.exchanger.Present(c.ctx(), c.org(), n.Token, n.Scope, true)
	if err != nil {
		return nil, s.CountFailure(c.w.Header(), c.r.RemoteAddr, err)
	}
	actor := ledger.Actor{Name: rule.Name, Via: ledger.ViaAPI, Address: addressOf(c.r.RemoteAddr)}
	issued, err := s.config.Authority.Issue(store.WithActor(c.ctx(), actor), c.org(), key,
		store.Exchange{Rule: rule, Claims: claims, Scope: n.Scope})
	if err != nil {
		return nil, s.CountFailure(c.w.Header(), c.r.RemoteAddr, err)
	}
	return &reply{status: http.StatusCreated, record: issued, secret: true}, nil
}

func (s *Server) checkAuthority() error {
	if s.config.Authority == nil {
		return ledger.Errorf(ledger.CodeNotFound, "this server has no folder for the keys of CAs")
	}
	return nil
}

// draftReview returns a statement for a member to sign.
func (s *Server) draftReview(c *call) (*reply, error) {
	var n review.NewDraft
	if err := c.decode(&n, review.MaxRequest); err != nil {
		return nil, err
	}
	return issued(s.reviews.Draft(c.ctx(), c.place(), c.caller.token, n))
}

// recordReview records a statement that the member has signed.
func (s *Server) recordReview(c *call) (*reply, error) {
	var n review.NewReview
	if err := c.decode(&n, review.MaxRequest); err != nil {
		return nil, err
	}
	signed, err := s.reviews.Sign(c.ctx(), c.place(), c.caller.token, n)
	if err != nil {
		return nil, err
	}
	record, _, err := s.record(c, signed)
	if err != nil {
		return nil, err
	}
	return created(record, attestationsURL(record.Org, record.Repo)+"/"+record.ID), nil
}

func (c *call) place() reviews.Place {
	return reviews.Place{Org: c.org(), Repo: c.repo(), Commit: c.sha()}
}
