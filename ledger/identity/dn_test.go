package identity

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/internal/testenv"
)

func TestParseDN(t *testing.T) {
	tests := []struct {
		text      string
		want      DN
		canonical string // if empty, the same as text
	}{
		{"cn=ci,ou=build,o=acme", DN{"ci", "build", "acme"}, ""},
		{"cn=ci", DN{CN: "ci"}, ""},
		{"cn=ci,o=acme", DN{CN: "ci", O: "acme"}, ""},
		{"O=acme,OU=build,CN=ci", DN{"ci", "build", "acme"}, "cn=ci,ou=build,o=acme"},
		{" cn = ci bot , ou = build ", DN{CN: "ci bot", OU: "build"}, "cn=ci bot,ou=build"},
		{`cn=Doe\, Jane,o=Acme \"A\" \+ Sons \<x\>\;\=\\`, DN{CN: "Doe, Jane", O: `Acme "A" + Sons <x>;=\`}, ""},
		{`cn=a=b`, DN{CN: "a=b"}, `cn=a\=b`},
		{`cn=\ ci\ `, DN{CN: " ci "}, ""},
		{`cn=\20ci\20`, DN{CN: " ci "}, `cn=\ ci\ `},
		{`cn=\#1`, DN{CN: "#1"}, ""},
		{`cn=a#1`, DN{CN: "a#1"}, ""},
		{`cn=Lu\C4\8Di\C4\87`, DN{CN: "Lučić"}, `cn=Lučić`},
		{`cn=a\00b\0a`, DN{CN: "a\x00b\n"}, ""},
		{"cn=a\tb", DN{CN: "a\tb"}, `cn=a\09b`},
		{"cn=\u202eevil", DN{CN: "\u202eevil"}, `cn=\e2\80\aeevil`},
		{"cn=*", DN{CN: "*"}, ""},
		{`cn=\*`, DN{CN: "*"}, `cn=*`},
		{"cn=" + strings.Repeat("x", 256), DN{CN: strings.Repeat("x", 256)}, ""},
	}

	for _, test := range tests {
		got, err := ParseDN(test.text)
		if err != nil || got != test.want {
			t.Errorf("ParseDN(%q) = %q, %v; want %q", test.text, got, err, test.want)
			continue
		}
		if test.canonical == "" {
			test.canonical = test.text
		}
		if got.String() != test.canonical {
			t.Errorf("%q formats as %s, want %s", got, got, test.canonical)
		}
	}
}

func TestParseDNRefused(t *testing.T) {
	for text, reason := range map[string]string{
		"":                                 "no =",
		"ci":                               "no =",
		"cn=":                              "no value",
		"cn=  ":                            "no value",
		"ou=build,o=acme":                  "no cn",
		"cn=ci,":                           "no =",
		"cn=ci,,o=acme":                    "unknown attribute",
		"cn=ci,cn=cd":                      "twice",
		"cn=ci,CN=ci":                      "twice",
		"cn=ci,c=CH":                       "unknown attribute",
		"cn=ci,2.5.4.10=acme":              "unknown attribute",
		"cn=ci+ou=build":                   "unescaped +",
		"cn=#0c026369":                     "BER",
		`cn="ci"`:                          `unescaped "`,
		"cn=<ci>":                          "unescaped <",
		"cn=a;b":                           "unescaped ;",
		`cn=ci\`:                           "not an escape",
		`cn=ci\z`:                          "not an escape",
		`cn=ci\4`:                          "not an escape",
		`cn=\ff`:                           "UTF-8",
		"cn=\xff":                          "UTF-8",
		"cn=" + strings.Repeat("x", 257):   "longer than 256",
		"cn=" + strings.Repeat(" ", 3000):  "too long",
		"cn=ci," + strings.Repeat("x", 90): "no =",
	} {
		if got, err := ParseDN(text); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("ParseDN(%q) = %q, %v; want error with %q", text, got, err, reason)
		}
	}
}

// drawValue draws an attribute value with many characters that need escaping.
func drawValue(least int) *rapid.Generator[string] {
	odd := rapid.SampledFrom([]rune(` #,+"\<>;=*abAB09ü世` + "\x00\x1f\x7f\u0085\u200e\u2028\u202e\ufffd\U0001f600"))
	return rapid.StringOfN(rapid.OneOf(odd, rapid.Rune()), least, 64, maxAttribute).Filter(utf8.ValidString)
}

func drawDN(t *rapid.T) DN {
	return DN{drawValue(1).Draw(t, "cn"), drawValue(0).Draw(t, "ou"), drawValue(0).Draw(t, "o")}
}

// Parsing the text of a DN returns the same DN, for any values.
func TestDNRoundTrip(t *testing.T) {
	testenv.Check(t, func(t *rapid.T) {
		d := drawDN(t)
		text := d.String()
		back, err := ParseDN(text)
		if err != nil || back != d {
			t.Fatalf("%q formats as %s, which parses as %q, %v", d, text, back, err)
		}
		if strings.ContainsFunc(text, isHidden) {
			t.Fatalf("%q contains a control or bidirectional character", text)
		}
	})
}

// String escapes invalid UTF-8, which a DN in a literal may have.
func TestDNStringOfBytes(t *testing.T) {
	if got := (DN{CN: "a\xff\xfeb"}).String(); got != `cn=a\ff\feb` {
		t.Errorf("got %s", got)
	}
	if got := (DN{}).String(); got != "" {
		t.Errorf("got %s", got)
	}
}

func TestSubjectDN(t *testing.T) {
	oid := func(last int) asn1.ObjectIdentifier { return asn1.ObjectIdentifier{2, 5, 4, last} }
	parsed := func(names ...pkix.AttributeTypeAndValue) pkix.Name {
		return pkix.Name{Names: names}
	}

	tests := []struct {
		name string
		in   pkix.Name
		want DN
		err  string
	}{
		{"a parsed certificate", must(ParseCertificates(must(os.ReadFile("../testdata/cosign/leaf.crt"))))[0].Subject,
			DN{"ci-bot", "build", "acme"}, ""},
		{"a literal", pkix.Name{CommonName: "ci", OrganizationalUnit: []string{"build"}, Organization: []string{"acme"}},
			DN{"ci", "build", "acme"}, ""},
		{"with another attribute", parsed(pkix.AttributeTypeAndValue{Type: oid(6), Value: "CH"},
			pkix.AttributeTypeAndValue{Type: oid(3), Value: "ci"}), DN{CN: "ci"}, ""},
		{"no CN", pkix.Name{Organization: []string{"acme"}}, DN{}, "no CN"},
		{"empty CN", parsed(pkix.AttributeTypeAndValue{Type: oid(3), Value: ""}), DN{}, "no CN"},
		{"an empty name", pkix.Name{}, DN{}, "no CN"},
		{"two CNs", parsed(pkix.AttributeTypeAndValue{Type: oid(3), Value: "ci"},
			pkix.AttributeTypeAndValue{Type: oid(3), Value: "cd"}), DN{}, "more than one CN"},
		{"two units", pkix.Name{CommonName: "ci", OrganizationalUnit: []string{"a", "b"}}, DN{}, "more than one OU"},
		{"the same O twice", pkix.Name{CommonName: "ci", Organization: []string{"a", "a"}}, DN{}, "more than one O"},
		{"not a string", parsed(pkix.AttributeTypeAndValue{Type: oid(3), Value: 7}), DN{}, "CN is not a string"},
		{"not UTF-8", pkix.Name{CommonName: "\xff"}, DN{}, "CN is not valid UTF-8"},
		{"too long", pkix.Name{CommonName: strings.Repeat("x", 257)}, DN{}, "CN is longer"},
	}

	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := subjectDN(test.in)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got %q, %v; want error with %q", got, err, test.err)
				}
				return
			}
			if err != nil || got != test.want {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

// FuzzParseDN checks that String and ParseDN round-trip.
func FuzzParseDN(f *testing.F) {
	for _, text := range []string{"cn=ci,ou=build,o=acme", `CN = \ a\,b\00\# , o=\c3\a9`, "o=x", "cn=a=b,ou=#", `cn=\`,
		"cn=*"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDN(text)
		if err != nil {
			return
		}
		if back, err := ParseDN(d.String()); err != nil || back != d {
			t.Fatalf("%q parses as %q, formats as %s, and parses again as %q, %v", text, d, d, back, err)
		}
	})
}

// must returns v. It panics if err is not nil.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
