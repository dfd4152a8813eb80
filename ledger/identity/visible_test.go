package identity_test

import (
	"crypto/x509/pkix"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

// invisible holds a character of each kind that nobody can see, and some that this
// version of Unicode does not know.
var invisible = map[string]rune{
	"NUL":                         0,
	"a tab":                       '\t',
	"a line feed":                 '\n',
	"delete":                      0x7f,
	"next line":                   0x85,
	"a soft hyphen":               0xad,
	"a combining grapheme joiner": 0x34f,
	"an Arabic letter mark":       0x61c,
	"a Hangul choseong filler":    0x115f,
	"a Hangul jungseong filler":   0x1160,
	"a Khmer inherent vowel":      0x17b4,
	"a Mongolian variation":       0x180b,
	"a Mongolian vowel separator": 0x180e,
	"a zero-width space":          0x200b,
	"a zero-width non-joiner":     0x200c,
	"a zero-width joiner":         0x200d,
	"a left-to-right mark":        0x200e,
	"a line separator":            0x2028,
	"a right-to-left override":    0x202e,
	"a word joiner":               0x2060,
	"an invisible times":          0x2062,
	"an unassigned ignorable":     0x2065,
	"a left-to-right isolate":     0x2066,
	"a deprecated format":         0x206a,
	"a Braille blank":             0x2800,
	"a Hangul filler":             0x3164,
	"a private character":         0xe000,
	"a variation selector":        0xfe0f,
	"a byte order mark":           0xfeff,
	"a half-width Hangul filler":  0xffa0,
	"an unassigned special":       0xfff0,
	"an interlinear annotation":   0xfff9,
	"a noncharacter":              0xffff,
	"a Khitan filler":             0x16fe4,
	"a shorthand control":         0x1bca0,
	"a null notehead":             0x1d159,
	"a musical beam":              0x1d173,
	"a language tag":              0xe0001,
	"a tag":                       0xe0061,
	"a supplementary variation":   0xe0100,
	"an unassigned tag":           0xe0fff,
	"a supplementary private":     0xf0000,
	"the last code point":         0x10ffff,
	"an unassigned letter":        0x378,
	"an unassigned ideograph":     0x3fffd,
}

func TestInvisibleNamesRefused(t *testing.T) {
	bare := ledgertest.PublicPEM(ledgertest.NewP256().Public())
	asKey := func(text, dn, email string) identity.NewIdentity {
		return identity.NewIdentity{Kind: identity.KeyIdentity, PEM: text, DN: dn, Email: email}
	}
	certOf := func(name pkix.Name) string {
		return ledgertest.CertPEM(ledgertest.NewCert(nil, name, ledgertest.NewP256(), ledgertest.AsCA).Cert)
	}

	for name, r := range invisible {
		t.Run(name, func(t *testing.T) {
			type refusal struct {
				n     identity.NewIdentity
				field string
			}
			escaped := ""
			for _, c := range []byte("a" + string(r) + "b") {
				escaped += fmt.Sprintf(`\%02x`, c)
			}
			hidden := "a" + string(r) + "b"
			tests := map[string]refusal{
				"cn":               {asKey(bare, "cn="+escaped+",ou=build,o=acme", ""), "dn"},
				"ou":               {asKey(bare, "cn=ci,ou="+escaped+",o=acme", ""), "dn"},
				"o":                {asKey(bare, "cn=ci,ou=build,o="+escaped, ""), "dn"},
				"e-mail":           {asKey(bare, "cn=ci,ou=build,o=acme", hidden+"@acme.example"), "email"},
				"certificate's cn": {asKey(certOf(pkix.Name{CommonName: hidden}), "", ""), "pem"},
				"certificate's o": {
					asKey(certOf(pkix.Name{CommonName: "ci", Organization: []string{hidden}}), "", ""), "pem"},
				"root's cn": {identity.NewIdentity{Kind: identity.RootIdentity,
					PEM: certOf(pkix.Name{CommonName: hidden})}, "pem"},
				"root's country": {identity.NewIdentity{Kind: identity.RootIdentity,
					PEM: certOf(pkix.Name{Country: []string{hidden}})}, "pem"},
			}

			for where, test := range tests {
				_, err := test.n.Identity()
				ledgertest.WantField(t, err, test.field)
				want := fmt.Sprintf("U+%04X", r)
				// Control characters are no part of an address anyway.
				if err == nil || where != "e-mail" && !strings.Contains(err.Error(), want) {
					t.Errorf("%s: got %v, want %s in it", where, err, want)
				}
			}
		})
	}
}

func TestBlankNamesRefused(t *testing.T) {
	n := identity.NewIdentity{Kind: identity.KeyIdentity, PEM: ledgertest.PublicPEM(ledgertest.NewP256().Public())}
	for _, blank := range []string{`\20`, "\u00a0", "\u3000\u2003"} {
		n.DN = "cn=ci,ou=build,o=" + blank
		_, err := n.Identity()
		ledgertest.WantField(t, err, "dn")
		if err == nil || !strings.Contains(err.Error(), "is blank") {
			t.Errorf("%q: got %v, want that it is blank", blank, err)
		}
	}
}

// Names in all scripts are accepted, and characters that can be mistaken only for
// others.
func TestVisibleNames(t *testing.T) {
	for _, name := range []string{"ci-bot", "Zoë", "Zoe\u0308", "O’Brien", "Žofie Č.", "Иван", "Ἀθηνᾶ", "יעל",
		"مريم",
		"संजय", "สมชาย", "陳大文", "김민준", "🦊", "a b",
		"a\u00a0b", "a\u3000b", "ﬁ", "Ａｎｎ", "½", "\ufffd", "𠮷田"} {
		n := identity.NewIdentity{Kind: identity.KeyIdentity, DN: "cn=" + name + ",ou=build,o=acme",
			PEM: ledgertest.PublicPEM(ledgertest.NewP256().Public())}
		id, err := n.Identity()
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if want := "cn=" + name + ",ou=build,o=acme"; id.DN != want {
			t.Errorf("%q is stored as %q", name, id.DN)
		}
	}
}

// An identity that an earlier version stored with an invisible character is still
// trusted.
func TestInvisibleNamesStored(t *testing.T) {
	key := ledgertest.NewP256()
	for name, r := range invisible {
		id := ledgertest.KeyIdentity(key.Public())
		dn := identity.DN{CN: "a" + string(r) + "b", OU: "build", O: "acme"}
		id.DN, id.Email = dn.String(), "a"+string(r)+"@acme.example"
		keys, err := identity.NewKeyring([]identity.Identity{id}, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		s := &identity.Signed{Message: []byte("x"), Signature: ledgertest.Must(identity.Sign(key, []byte("x")))}
		vouchers := ledgertest.Must(keys.Verify(s, ledgertest.Now.Std()))
		if got, err := vouchers.Signer("test:go", ""); err != nil || got.DN != dn {
			t.Errorf("%s: got %q, %v; want %q", name, got.DN, err, dn)
		}
	}
}

// FuzzVisible looks for a registered DN with a character that is not to be seen, by the
// names of Unicode's own properties.
func FuzzVisible(f *testing.F) {
	f.Add("cn=ci,ou=build,o=acme", "ci@acme.example")
	f.Add(`cn=a\e2\80\8bb,ou=b,o=c`, "a\u200b@b")
	text := ledgertest.PublicPEM(ledgertest.NewP256().Public())
	f.Fuzz(func(t *testing.T, dn, email string) {
		id, err := identity.NewIdentity{Kind: identity.KeyIdentity, PEM: text, DN: dn, Email: email}.Identity()
		if err != nil {
			ledgertest.WantCode(t, err, ledger.CodeInvalidField)
			return
		}
		stored := ledgertest.Must(identity.ParseDN(id.DN))
		for _, r := range stored.CN + stored.OU + stored.O + id.Email {
			if !unicode.IsPrint(r) && !unicode.Is(unicode.Zs, r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) {
				t.Errorf("%q and %q were registered with %U", id.DN, id.Email, r)
			}
		}
	})
}
