package passkey_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-webauthn/webauthn/protocol/webauthncbor"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
	"github.com/ledgerd/ledgerd/ledger/passkey"
	"github.com/ledgerd/ledgerd/ledger/passkey/passkeytest"
)

var party = passkey.Party{ID: "ledger.example.com", Origin: "https://ledger.example.com"}

// wantFault checks that err has a code, is about a field, if there is one, and has a text.
func wantFault(t testing.TB, name string, err error, code ledger.Code, field, text string) {
	t.Helper()
	e, ok := errors.AsType[*ledger.Error](err)
	if !ok || e.Code != code || !strings.Contains(e.Error(), text) ||
		field != "" && (len(e.Fields) != 1 || e.Fields[0].Field != field) {
		t.Errorf("%s: got %v, want the code %s, the field %q and %q", name, err, code, field, text)
	}
}

func TestParties(t *testing.T) {
	for _, test := range []struct{ id, pages, fault string }{
		{"ledger.example.com", "https://ledger.example.com", ""},
		{"ledger.example.com", "https://ledger.example.com:8443/ledger", ""},
		{"example.com", "https://ledger.example.com", ""}, // a parent
		{"localhost", "http://localhost:8080", ""},
		{"localhost", "http://ledger.localhost:8080", ""},
		{"ledger.example.com", "http://ledger.example.com", "must be at https"},
		{"ledger.example.com", "https://example.com", "must be at https"}, // a child
		{"example.com", "https://badexample.com", "must be at https"},
		{"localhost", "http://evillocalhost", "must be at https"},
		{"localhost", "ftp://localhost", "must be at https"},
		{"", "https://ledger.example.com", "not a domain"},
		{"127.0.0.1", "https://127.0.0.1", "not a domain"},
		{"Ledger.example.com", "https://Ledger.example.com", "not a domain"},
		{"https://ledger.example.com", "https://ledger.example.com", "not a domain"},
		{"ledger.example.com.", "https://ledger.example.com.", "not a domain"},
		{strings.Repeat("a.", 126) + "aa", "https://" + strings.Repeat("a.", 126) + "aa", "not a domain"},
		{"ledger.example.com", "", "must be at https"},
		{"ledger.example.com", "https://%zz", "parse"},
	} {
		p, err := passkey.NewParty(test.id, test.pages)
		if test.fault == "" {
			must.OK(t, err)
			if !strings.HasPrefix(test.pages, p.Origin) || p.ID != test.id {
				t.Errorf("%s at %s: %+v", test.id, test.pages, p)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), test.fault) {
			t.Errorf("%s at %s: %v, want %q", test.id, test.pages, err, test.fault)
		}
	}
}

// Browsers name origins without the port of the scheme, and hosts in lower case.
func TestOriginsOfParties(t *testing.T) {
	for pages, want := range map[string]string{
		"https://ledger.example.com:443":     "https://ledger.example.com",
		"https://Ledger.Example.com/ledger":  "https://ledger.example.com",
		"HTTPS://ledger.example.com":         "https://ledger.example.com",
		"https://ledger.example.com:8443":    "https://ledger.example.com:8443",
		"https://ledger.example.com:80":      "https://ledger.example.com:80",
		"http://ledger.example.localhost:80": "",
		"https://ledger.example.com:":        "https://ledger.example.com",
	} {
		p, err := passkey.NewParty("ledger.example.com", pages)
		if (err == nil) != (want != "") || err == nil && p.Origin != want {
			t.Errorf("pages at %s: the origin %q and %v, want %q", pages, p.Origin, err, want)
			continue
		}
		if err == nil {
			d := passkeytest.New(t, passkey.Party{ID: p.ID, Origin: want})
			_, err := enrolled(t, d).Assertion(p, d.Confirm(t, []byte("{}")), []byte("{}"))
			must.OK(t, err)
		}
	}
	p, err := passkey.NewParty("localhost", "http://localhost:80")
	must.OK(t, err)
	if p.Origin != "http://localhost" {
		t.Errorf("the origin is %q", p.Origin)
	}
}

// The challenge is the one that docs/reviews.md describes.
func TestChallenge(t *testing.T) {
	payload := []byte(`{"a":1}`)
	text := "ledgerd/approval/v1\x00DSSEv1 28 application/vnd.in-toto+json 7 " + `{"a":1}`
	if got, want := passkey.Challenge(payload), sha256.Sum256([]byte(text)); got != want {
		t.Errorf("%x, want %x", got, want)
	}
}

// Hooks that make a device deceive before it signs.
type hook = func(d *passkeytest.Device)

func origin(text string) hook { return func(d *passkeytest.Device) { d.Origin = text } }
func domain(text string) hook { return func(d *passkeytest.Device) { d.RPID = text } }
func flags(f byte) hook       { return func(d *passkeytest.Device) { d.Flags = f } }

func client(name string, value any) hook {
	return func(d *passkeytest.Device) { d.Client = map[string]any{name: value} }
}

// attested returns a request with another attestation. stmt returns it, given what the device signs.
func attested(
	t testing.TB, n passkey.NewPasskey, format string, stmt func(signed []byte) any,
) passkey.NewPasskey {
	t.Helper()
	var object map[string]any
	must.OK(t, webauthncbor.Unmarshal(n.AttestationObject, &object))
	client := sha256.Sum256(n.ClientData)
	object["fmt"], object["attStmt"] = format, stmt(append(bytes.Clone(object["authData"].([]byte)), client[:]...))
	var err error
	n.AttestationObject, err = webauthncbor.Marshal(object)
	must.OK(t, err)
	return n
}

// A device may attest itself, but certificates are not parsed: no attestation is asked for.
func TestAttestations(t *testing.T) {
	type statement = map[string]any
	d := passkeytest.New(t, party)
	n := d.Enrol(t, "Laptop", bytes.Repeat([]byte{7}, 32))
	self := func(signed []byte) any {
		digest := sha256.Sum256(signed)
		signature, err := ecdsa.SignASN1(rand.Reader, d.Key, digest[:])
		must.OK(t, err)
		return statement{"alg": -7, "sig": signature}
	}
	_, _, err := attested(t, n, "packed", self).Verify(party)
	must.OK(t, err)

	others := map[string]func(signed []byte) any{
		"packed":   func([]byte) any { return statement{"alg": -7, "sig": []byte{1}, "x5c": []any{[]byte{1}}} },
		"compound": func([]byte) any { return []any{statement{"fmt": "packed", "attStmt": statement{}}} },
	}
	for _, format := range []string{"fido-u2f", "tpm", "android-key", "android-safetynet", "apple", "other"} {
		others[format] = func([]byte) any { return statement{"x5c": []any{[]byte{1}}} }
	}
	for format, stmt := range others {
		_, _, err := attested(t, n, format, stmt).Verify(party)
		wantFault(t, format, err, ledger.CodeInvalidField, "attestation_object", "none or self")
	}
	_, _, err = attested(t, n, "packed", func([]byte) any { return statement{"alg": -7, "sig": []byte{1}} }).Verify(party)
	wantFault(t, "not by the passkey", err, ledger.CodeInvalidField, "attestation_object", "signature")
	_, _, err = attested(t, n, "packed", func(signed []byte) any {
		return statement{"alg": -7, "sig": self(signed).(statement)["sig"], "ecdaaKeyId": []byte{1}}
	}).Verify(party)
	wantFault(t, "ECDAA", err, ledger.CodeInvalidField, "attestation_object", "none or self")
}

// A key of another kind is refused before anything is verified with it: that would take seconds with a long
// one.
func TestKeys(t *testing.T) {
	type key = map[int]any
	point := func(size int) key { return key{1: 2, -2: make([]byte, size), -3: make([]byte, size)} }
	with := func(k key, alg, curve int) key { k[3], k[-1] = alg, curve; return k }
	rsa := func(size int) key {
		return key{1: 3, 3: -257, -1: bytes.Repeat([]byte{0xff}, size), -2: []byte{0x7f, 0xff, 0xff, 0xff}}
	}
	sha1, one := rsa(256), rsa(256)
	sha1[3], one[-2] = -65535, []byte{1}
	type weak struct {
		key  key
		text string
	}
	keys := map[string]weak{
		"RSA of 1024 bits": {rsa(128), "1024 bits"},
		"RSA, exponent 1":  {one, "exponent"},
		"long RSA":         {rsa(20_000), "must have 1 to 2048"},
		"RSA with SHA-1":   {sha1, "algorithm"},
		"no point":         {with(point(32), -7, 1), "not on curve"},
		"another curve":    {with(point(48), -7, 2), "curve"},
		"short Ed25519":    {key{1: 1, 3: -8, -1: 6, -2: []byte{1}}, "length"},
		"Ed25519 as such":  {key{1: 1, 3: -19, -1: 6, -2: make([]byte, 32)}, "algorithm"},
		"RSA of no size":   {rsa(0), "modulus"},
		"of no kind":       {key{1: 9, 3: -7}, "its key"},
	}
	for i, k := range ledgertest.SmallOrderKeys() {
		keys[fmt.Sprint("small order ", i)] = weak{key{1: 1, 3: -8, -1: 6, -2: []byte(k)}, "Ed25519 key"}
	}
	for name, test := range keys {
		text, err := webauthncbor.Marshal(test.key)
		must.OK(t, err)
		d := passkeytest.New(t, party)
		d.COSE = text
		n := attested(t, d.Enrol(t, "Laptop", bytes.Repeat([]byte{7}, 32)), "packed", func([]byte) any {
			return map[string]any{"alg": test.key[3], "sig": make([]byte, 20_000)}
		})
		_, _, err = n.Verify(party)
		wantFault(t, name, err, ledger.CodeInvalidField, "attestation_object", test.text)

		p := passkey.Passkey{RPID: party.ID, PublicKey: text}
		_, err = p.Assertion(party, d.Confirm(t, []byte("{}")), []byte("{}"))
		wantFault(t, name, err, ledger.CodeInvalidAssertion, "", "its public_key")
	}
}

// A device can enrol a passkey only for this server, with its user verified.
func TestEnrolment(t *testing.T) {
	const object = "attestation_object"
	challenge := bytes.Repeat([]byte{7}, 32)
	for name, test := range map[string]struct {
		device      hook
		change      func(n *passkey.NewPasskey)
		field, text string
	}{
		"right":            {},
		"without a name":   {nil, func(n *passkey.NewPasskey) { n.Name = "" }, "name", "1 to 100"},
		"invisible name":   {nil, func(n *passkey.NewPasskey) { n.Name = "a\u202eb" }, "name", "visible"},
		"long name":        {nil, func(n *passkey.NewPasskey) { n.Name = strings.Repeat("ä", 101) }, "name", ""},
		"no id":            {nil, func(n *passkey.NewPasskey) { n.CredentialID = nil }, "credential_id", "1 to"},
		"long id":          {nil, func(n *passkey.NewPasskey) { n.CredentialID = make([]byte, 1024) }, "credential_id", ""},
		"other id":         {nil, func(n *passkey.NewPasskey) { n.CredentialID = []byte{1} }, object, "does not match"},
		"no client data":   {nil, func(n *passkey.NewPasskey) { n.ClientData = nil }, "client_data", "JSON"},
		"no object":        {nil, func(n *passkey.NewPasskey) { n.AttestationObject = nil }, object, ""},
		"cut object":       {nil, func(n *passkey.NewPasskey) { n.AttestationObject = n.AttestationObject[:40] }, object, ""},
		"short challenge":  {client("challenge", "AAAA"), nil, "client_data", "challenge"},
		"a confirmation":   {client("type", "webauthn.get"), nil, object, "ceremony"},
		"another origin":   {origin("https://evil.example.com"), nil, object, "origin"},
		"another port":     {origin(party.Origin + ":8443"), nil, object, "origin"},
		"in a frame":       {client("crossOrigin", true), nil, object, "cross origin"},
		"another domain":   {domain("example.com"), nil, object, "RP Hash"},
		"user not present": {flags(passkeytest.Verified), nil, object, "presence"},
		"not verified":     {flags(passkeytest.Present), nil, object, "verification"},
	} {
		d := passkeytest.New(t, party)
		if test.device != nil {
			test.device(d)
		}
		n := d.Enrol(t, "Laptop", challenge)
		if test.change != nil {
			test.change(&n)
		}

		key, got, err := n.Verify(party)
		if test.field != "" {
			wantFault(t, name, err, ledger.CodeInvalidField, test.field, test.text)
			continue
		}
		must.OK(t, err)
		if !bytes.Equal(key, d.PublicKey(t)) || !bytes.Equal(got, challenge) {
			t.Errorf("%s: the key %x and the challenge %x", name, key, got)
		}
	}
}

func statement(t testing.TB, commit string) []byte {
	t.Helper()
	s, err := attestation.NewStatement("acme/api", strings.Repeat(commit, 40), attestation.ResultPredicate{
		Predicate: "review:code", Result: ledger.Result{Status: ledger.Pass}})
	must.OK(t, err)
	return s
}

// enrolled returns the passkey of a device.
func enrolled(t testing.TB, d *passkeytest.Device) passkey.Passkey {
	t.Helper()
	key := d.PublicKey(t)
	return passkey.Passkey{ID: "1", RPID: party.ID, CredentialID: d.ID, PublicKey: key, Key: passkey.Fingerprint(key)}
}

// A passkey confirms one statement, for this server, with its user verified.
func TestAssertions(t *testing.T) {
	approved := statement(t, "1")
	bare := sha256.Sum256(attestation.PAE(attestation.StatementType, approved))
	for name, test := range map[string]struct {
		device hook
		change func(c *passkey.Confirmation)
		text   string
	}{
		"right":             {},
		"no purpose":        {client("challenge", base64.RawURLEncoding.EncodeToString(bare[:])), nil, "challenge"},
		"an enrolment":      {client("type", "webauthn.create"), nil, "ceremony"},
		"another origin":    {origin("https://evil.example"), nil, "cannot use passkeys"},
		"a subdomain":       {origin("https://x.ledger.example.com"), nil, "not at https://ledger.example.com"},
		"without TLS":       {origin("http://ledger.example.com"), nil, "cannot use passkeys"},
		"origin and path":   {origin(party.Origin + "/"), nil, "cannot use passkeys"},
		"in a frame":        {client("crossOrigin", true), nil, "cross origin"},
		"with a top origin": {client("topOrigin", party.Origin), nil, "topOrigin"},
		"another domain":    {domain("example.com"), nil, "RP Hash"},
		"user not present":  {flags(passkeytest.Verified), nil, "presence"},
		"not verified":      {flags(passkeytest.Present), nil, "verification"},
		"another key":       {func(d *passkeytest.Device) { d.Key = passkeytest.New(t, party).Key }, nil, "signature"},
		"no signature":      {nil, func(c *passkey.Confirmation) { c.Signature = nil }, "signature"},
		"no client data":    {nil, func(c *passkey.Confirmation) { c.ClientData = nil }, "JSON"},
		"other client data": {nil, func(c *passkey.Confirmation) { c.ClientData = append(c.ClientData, ' ') }, "signature"},
		"no data":           {nil, func(c *passkey.Confirmation) { c.AuthenticatorData = nil }, "auth data"},
		"other data":        {nil, func(c *passkey.Confirmation) { c.AuthenticatorData[36] = 1 }, "signature"},
		"no id":             {nil, func(c *passkey.Confirmation) { c.CredentialID = nil }, "credential_id"},
	} {
		d := passkeytest.New(t, party)
		p := enrolled(t, d)
		if test.device != nil {
			test.device(d)
		}
		c := d.Confirm(t, approved)
		if test.change != nil {
			test.change(&c)
		}

		_, err := p.Assertion(party, c, approved)
		if test.text == "" {
			must.OK(t, err)
		} else {
			wantFault(t, name, err, ledger.CodeInvalidAssertion, "", test.text)
		}
	}
}

// An assertion is verified with nothing but its text and the statement.
func TestAssertionsAreKept(t *testing.T) {
	approved := statement(t, "1")
	d := passkeytest.New(t, party)
	p := enrolled(t, d)
	made, err := p.Assertion(party, d.Confirm(t, approved), approved)
	must.OK(t, err)
	text, err := made.Text()
	must.OK(t, err)

	a, err := passkey.ParseAssertion(text)
	must.OK(t, err)
	must.OK(t, a.Verify(approved))
	if a.Key() != p.Key || a.RPID != party.ID {
		t.Errorf("the key %s for %s", a.Key(), a.RPID)
	}
	wantFault(t, "another statement", a.Verify(statement(t, "2")), ledger.CodeInvalidAssertion, "", "challenge")
	if got, want := passkey.Digest(text), fmt.Sprintf("sha256:%x", sha256.Sum256(text)); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
	if passkey.Digest(nil) != "" {
		t.Error("no assertion has a digest")
	}

	fits := a
	fits.ClientData = nil
	rest, err := fits.Text()
	must.OK(t, err)
	room := (passkey.MaxAssertion - len(rest)) / 4 * 3 // in base64
	fits.ClientData = make([]byte, room)
	_, err = fits.Text()
	must.OK(t, err)
	fits.ClientData = make([]byte, room+3)
	_, err = fits.Text()
	wantFault(t, "long client data", err, ledger.CodeInvalidAssertion, "", "may have at most")

	long := a
	long.PublicKey = make([]byte, 4096)
	wantFault(t, "long key", long.Verify(approved), ledger.CodeInvalidAssertion, "", "must have 1 to 2048")
	for name, change := range map[string]func(a *passkey.Assertion){
		"domain of the key": func(a *passkey.Assertion) { a.RPID = "example.com" },
		"no domain":         func(a *passkey.Assertion) { a.RPID = "" },
		"public domain":     func(a *passkey.Assertion) { a.RPID = "com" },
		"no key":            func(a *passkey.Assertion) { a.PublicKey = nil },
		"not a key":         func(a *passkey.Assertion) { a.PublicKey = []byte{0xa0} },
		"another key":       func(a *passkey.Assertion) { a.PublicKey = passkeytest.New(t, party).PublicKey(t) },
	} {
		changed := a
		change(&changed)
		wantFault(t, name, changed.Verify(approved), ledger.CodeInvalidAssertion, "", "")
	}

	p.RPID = "old.example.com"
	_, err = p.Assertion(party, d.Confirm(t, approved), approved)
	wantFault(t, "passkey of a former domain", err, ledger.CodeInvalidAssertion, "", "the passkey is for old.example.com")
}

func TestTextsOfAssertionsAreBounded(t *testing.T) {
	for _, text := range []string{"", "[]", `{"rp_id":1}`, `{"rp_id":"` + strings.Repeat("a", 16<<10) + `"}`} {
		_, err := passkey.ParseAssertion([]byte(text))
		wantFault(t, fmt.Sprintf("%.20q", text), err, ledger.CodeInvalidAssertion, "", "")
	}
}

// Hostile texts are errors, and never a panic.
func FuzzTexts(f *testing.F) {
	f.Add([]byte(`{"rp_id":"ledger.example.com","public_key":"AA=="}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if a, err := passkey.ParseAssertion(text); err == nil && a.Verify([]byte("{}")) == nil {
			t.Errorf("verified: %q", text)
		}
	})
}

// So are hostile parts of assertions. What verifies is by a key that was accepted.
func FuzzAssertion(f *testing.F) {
	d := passkeytest.New(f, party)
	approved := statement(f, "1")
	signed := d.Confirm(f, approved)
	f.Add(d.PublicKey(f), signed.ClientData, signed.AuthenticatorData, signed.Signature)
	f.Fuzz(func(t *testing.T, key, client, data, signature []byte) {
		c := passkey.Confirmation{CredentialID: d.ID, ClientData: client, AuthenticatorData: data, Signature: signature}
		a := passkey.Assertion{RPID: party.ID, PublicKey: key, Confirmation: c}
		isOwn := bytes.Equal(key, d.PublicKey(t))
		if a.Verify(approved) == nil && isOwn && !bytes.Equal(client, signed.ClientData) {
			t.Errorf("the passkey has not signed %q", client)
		}
	})
}

// So are hostile requests to enrol a passkey.
func FuzzEnrolment(f *testing.F) {
	d := passkeytest.New(f, party)
	n := d.Enrol(f, "Laptop", bytes.Repeat([]byte{7}, 32))
	f.Add(n.CredentialID, n.ClientData, n.AttestationObject)
	self := attested(f, n, "packed", func([]byte) any { return map[string]any{"alg": -7, "sig": []byte{1}} })
	f.Add(n.CredentialID, n.ClientData, self.AttestationObject)
	f.Fuzz(func(t *testing.T, id, client, object []byte) {
		n := passkey.NewPasskey{Name: "Laptop", CredentialID: id, ClientData: client, AttestationObject: object}
		if key, challenge, err := n.Verify(party); err == nil && (len(key) == 0 || len(challenge) != 32) {
			t.Errorf("the key %x for the challenge %x", key, challenge)
		}
	})
}
