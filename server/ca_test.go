package server

import (
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

const (
	caURL       = "/v1/orgs/acme/ci-ca"
	peopleCAURL = "/v1/orgs/acme/people-ca"
)

func TestCAOfAnOrg(t *testing.T) {
	b := newBackend(t)
	b.get(caURL).wantProblem(404, ledger.CodeNotFound)
	b.delete(caURL).wantProblem(404, ledger.CodeNotFound)
	b.send(request{method: "POST", path: caURL, token: b.writer, body: `{"may":["*"]}`}).wantProblem(403,
		ledger.CodeForbidden)

	resp := b.post(caURL, `{"may":["test:*"]}`).want(201)
	root := decode[identity.Identity](resp)
	if root.Kind != identity.RootIdentity || root.DNPattern != "ou=ci-*,o=acme" || root.May.String() != "test:*" {
		t.Errorf("created %+v", root)
	}
	if at := resp.header.Get("Location"); at != "/v1/orgs/acme/identities/"+root.ID {
		t.Errorf("created at %s", at)
	}
	if got := decode[identity.Identity](b.get(caURL).want(200)); got.ID != root.ID || got.PEM != root.PEM {
		t.Errorf("got %+v, want %+v", got, root)
	}
	b.post(caURL, `{"may":["*"]}`).wantProblem(409, ledger.CodeAlreadyExists)
	next := decode[identity.Identity](b.post(caURL, `{"may":["*"],"dn_pattern":"ou=ci-build","replace":true}`).want(201))
	if next.ID == root.ID || next.DNPattern != "ou=ci-build" || next.May != nil {
		t.Errorf("replaced by %+v", next)
	}

	b.delete(caURL).want(204)
	b.get(caURL).wantProblem(404, ledger.CodeNotFound)
	if got := decode[identity.Identity](b.get("/v1/orgs/acme/identities/" + next.ID).want(200)); got.RevokedAt == 0 {
		t.Errorf("the root of a retired CA is %+v", got)
	}
}

// The CA for people is separate, and has defaults.
func TestCAOfPeople(t *testing.T) {
	b := newBackend(t)
	b.post(caURL, `{"may":["test:*"]}`).want(201)
	b.get(peopleCAURL).wantProblem(404, ledger.CodeNotFound)
	b.send(request{method: "POST", path: peopleCAURL, token: b.writer, body: `{}`}).wantProblem(403, ledger.CodeForbidden)
	b.post(peopleCAURL, `{"dn_pattern":"ou=ci-*,o=acme"}`).wantProblem(422, ledger.CodeInvalidField)

	root := decode[identity.Identity](b.post(peopleCAURL, `{}`).want(201))
	if root.DNPattern != "ou=people-*,o=acme" || root.May.String() != "review:*" {
		t.Errorf("created %+v", root)
	}
	b.post(peopleCAURL, `{}`).wantProblem(409, ledger.CodeAlreadyExists)
	next := decode[identity.Identity](b.post(peopleCAURL, `{"replace":true}`).want(201))
	if got := decode[identity.Identity](b.get(peopleCAURL).want(200)); got.ID != next.ID || next.ID == root.ID {
		t.Errorf("got %+v, want %+v", got, next)
	}

	b.delete(peopleCAURL).want(204)
	b.get(peopleCAURL).wantProblem(404, ledger.CodeNotFound)
	b.get(caURL).want(200)
}

func TestCAsAreRefused(t *testing.T) {
	b := newBackend(t)
	for body, field := range map[string]string{
		`{"may":[]}`: "may", `{"may":["a*b"]}`: "may[0]", `{"may":["*"],"dn_pattern":"o=acme"}`: "dn_pattern",
	} {
		p := b.post(caURL, body).wantProblem(422, ledger.CodeInvalidField)
		if len(p.Errors) != 1 || p.Errors[0].Field != field {
			t.Errorf("%s: %+v, want an error about %s", body, p, field)
		}
	}
	b.post(caURL, `{"may":["*"],"serial":1}`).wantProblem(400, ledger.CodeUnknownField)

	none := newBackend(t, func(c *Config) { c.Authority = nil })
	none.post(caURL, `{"may":["*"]}`).wantProblem(404, ledger.CodeNotFound)
}
