package settings

import (
	"cmp"
	"strings"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// An identitiesPage lists the keys and roots that an org trusts or has trusted.
type identitiesPage struct {
	Identities []identityRow
	Next       string
	// TrustedRoots are the versions in effect.
	TrustedRoots []identity.TrustedRoot
}

// An identityRow is a key or root with its state.
type identityRow struct {
	identity.Identity
	State string // active, expired or revoked
}

func showIdentities(v *page.Visit) (*page.Response, error) {
	p, err := v.API.IdentitiesPage(v.Ctx(), v.Org, client.Query{Limit: settingsRows, Cursor: v.Query("cursor")})
	if err != nil {
		return nil, err
	}
	now := v.Now()
	shown := identitiesPage{Next: v.NextPage(p.NextCursor)}
	for _, i := range p.Data {
		shown.Identities = append(shown.Identities, identityRow{i, lifeOf(i.RevokedAt, i.NotAfter, now)})
	}
	if shown.TrustedRoots, err = trustedRoots(v); err != nil {
		return nil, err
	}
	return v.Page("identities", "Identities", shown), nil
}

func showIdentityForm(v *page.Visit) (*page.Response, error) {
	f := page.NewForm("kind", string(identity.KeyIdentity))
	return v.Page("identity-new", "Add identity", page.FormPage{Form: f}), nil
}

func addIdentity(v *page.Visit) (*page.Response, error) {
	f := v.Form()
	refuseKeys(f, "dn", "emails", "logins", "may", "dn_pattern")
	if !f.Failed() {
		_, err := v.API.AddIdentity(v.Ctx(), v.Org, identity.NewIdentity{
			Kind:   identity.Kind(f.Get("kind")),
			PEM:    strings.ReplaceAll(f.Get("pem"), "\r\n", "\n"), // forms are sent with CRLF
			DN:     strings.TrimSpace(f.Get("dn")),
			Emails: entriesIn(f.Get("emails")),
			Logins: entriesIn(f.Get("logins")),

			May:       entriesIn(f.Get("may")),
			DNPattern: strings.TrimSpace(f.Get("dn_pattern")),
			Sigstore:  entryIn(f),
		})
		if err != nil && !explainEntries(f, err) {
			return nil, err
		}
	}

	if f.Failed() {
		if f.Errors["pem"] != "" || containsKey(f.Get("pem")) {
			f.Values.Del("pem") // it may be a secret, which no p must show
		}
		return page.Again(f, v.Page("identity-new", "Add identity", page.FormPage{Form: f})), nil
	}
	return page.SeeOther(v.PathOf(page.IdentitiesPattern)), nil
}

// entriesIn returns the entries of a list in a field, which are on lines of their own or
// separated by commas.
func entriesIn(text string) []string {
	var entries []string
	for field := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == ',' }) {
		if field = strings.TrimSpace(field); field != "" {
			entries = append(entries, field)
		}
	}
	return entries
}

// explainEntries is [page.Form.Explain], with the error of an entry on the field of its list.
func explainEntries(f *page.Form, err error) bool {
	if !f.Explain(err) {
		return false
	}
	for field, message := range f.Errors {
		if list, _, isEntry := strings.Cut(field, "["); isEntry {
			f.Fail(list, message)
		}
	}
	return true
}

// An identityFormPage shows a form about an identity.
type identityFormPage struct {
	Form     *page.Form
	Identity identity.Identity
}

func editIdentityForm(v *page.Visit) (*page.Response, error) {
	i, err := v.API.Identity(v.Ctx(), v.Org, v.Value("id"))
	if err != nil {
		return nil, err
	}
	may := cmp.Or(strings.Join(i.May, "\n"), "*") // an empty field is an error for keyless signers
	f := page.NewForm("may", may, "dn_pattern", i.DNPattern,
		"emails", strings.Join(i.Addresses(), "\n"), "logins", strings.Join(i.Logins, "\n"))
	return v.Page("identity-edit", "Edit identity", identityFormPage{f, i}), nil
}

func editIdentity(v *page.Visit) (*page.Response, error) {
	f := v.Form()
	i, err := v.API.Identity(v.Ctx(), v.Org, v.Value("id"))
	if err != nil {
		return nil, err
	}

	refuseKeys(f, "emails", "logins", "may", "dn_pattern")
	if !f.Failed() {
		change := identity.Change{May: new(identity.Predicates(entriesIn(f.Get("may"))))}
		if i.Kind != identity.RootIdentity {
			change.Logins = new(entriesIn(f.Get("logins")))
		}
		switch i.Kind {
		case identity.RootIdentity:
			change.DNPattern = new(strings.TrimSpace(f.Get("dn_pattern")))
		case identity.KeyIdentity:
			change.Emails = new(entriesIn(f.Get("emails")))
		case identity.SigstoreIdentity:
		}
		_, err = v.API.ChangeIdentity(v.Ctx(), v.Org, i.ID, change)
		if err != nil && !explainEntries(f, err) {
			return nil, err
		}
	}
	if f.Failed() {
		return page.Again(f, v.Page("identity-edit", "Edit identity", identityFormPage{f, i})), nil
	}
	return page.SeeOther(v.PathOf(page.IdentitiesPattern)), nil
}

// refuseKeys rejects fields that contain a private key, pasted by mistake, and
// clears them. The API's error would quote the key.
func refuseKeys(f *page.Form, fields ...string) {
	for _, name := range fields {
		if containsKey(f.Get(name)) {
			f.Values.Del(name)
			f.Fail(name, "contains a private key, which is now exposed: create a new one")
		}
	}
}

func containsKey(text string) bool { return strings.Contains(strings.ToUpper(text), "PRIVATE") }

func revokeIdentity(v *page.Visit) (*page.Response, error) {
	return v.Then(v.API.RevokeIdentity(v.Ctx(), v.Org, v.Value("id")), page.IdentitiesPattern)
}

func showDistrustForm(v *page.Visit) (*page.Response, error) {
	i, err := v.API.Identity(v.Ctx(), v.Org, v.Value("id"))
	if err != nil {
		return nil, err
	}
	return v.Page("identity-distrust", "Compromised identity", identityFormPage{page.NewForm(), i}), nil
}

func distrustIdentity(v *page.Visit) (*page.Response, error) {
	f := v.Form()
	i, err := v.API.Identity(v.Ctx(), v.Org, v.Value("id"))
	if err != nil {
		return nil, err
	}

	since, err := ledger.ParseSince(strings.TrimSpace(f.Get("since")))
	if err != nil {
		f.Fail("since", err.Error())
	} else if err = v.API.DistrustIdentity(v.Ctx(), v.Org, i.ID, since); err != nil && !f.Explain(err) {
		return nil, err
	}
	if f.Failed() {
		return page.Again(f, v.Page("identity-distrust", "Compromised identity", identityFormPage{f, i})), nil
	}
	return page.SeeOther(v.PathOf(page.IdentitiesPattern)), nil
}

func showTrustedRootForm(v *page.Visit) (*page.Response, error) {
	return v.Page("trusted-root", "Set trusted root", page.FormPage{Form: page.NewForm()}), nil
}

func setTrustedRoot(v *page.Visit) (*page.Response, error) {
	f := v.Form()
	refuseKeys(f, "name", "document")
	name := strings.TrimSpace(f.Get("name"))
	if err := identity.CheckTrustedRootName(name); err != nil && !f.Failed() {
		f.Fail("name", err.Error())
	}
	if !f.Failed() {
		document := strings.ReplaceAll(f.Get("document"), "\r\n", "\n") // forms are sent with CRLF
		_, err := v.API.SetTrustedRoot(v.Ctx(), v.Org, name, []byte(document))
		if err != nil && !f.Explain(err) {
			return nil, err
		}
	}
	if f.Failed() {
		return page.Again(f, v.Page("trusted-root", "Set trusted root", page.FormPage{Form: f})), nil
	}
	return page.SeeOther(v.PathOf(page.IdentitiesPattern)), nil
}
