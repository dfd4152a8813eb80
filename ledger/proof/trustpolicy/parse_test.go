package trustpolicy_test

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"reflect"
	"strings"
	"testing"

	formats "github.com/transparency-dev/formats/note"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
	"github.com/ledgerd/ledgerd/ledger/proof/trustpolicy"
)

// key returns the vkey of a key pair that depends on n.
func key(name string, kind byte, n int) string { return keyOf(name, kind, n).String() }

func keyOf(name string, kind byte, n int) trustpolicy.Key {
	public := private(n).Public().(ed25519.PublicKey)
	return trustpolicy.NewKey(name, kind, public)
}

func private(n int) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(fmt.Appendf(make([]byte, 0, 32), "%032d", n))
}

// example is the policy of the text of tlog-policy, with keys.
func example() string {
	witness := func(name string, n int) string {
		return "witness " + name + " " + key("w.example/"+name, trustpolicy.CosignedV1, n) + "\n"
	}
	return "log " + key("log.example/1", trustpolicy.Ed25519, 1) + "\n" +
		witness("X1", 11) + witness("X2", 12) + witness("X3", 13) +
		"group X-witnesses 2 X1 X2 X3\n" +
		witness("Y1", 21) + witness("Y2", 22) + witness("Y3", 23) +
		"group Y-witnesses any Y1 Y2 Y3\n" +
		"group X-and-Y all X-witnesses Y-witnesses\n" +
		"quorum X-and-Y\n"
}

func TestTheExampleOfTheTextIsParsed(t *testing.T) {
	p := must.Get(trustpolicy.Parse([]byte("# a comment\n\n \t \n\t# and another: \xff\n" + example())))(t)
	if len(p.Logs) != 1 || len(p.Witnesses) != 6 || p.Quorum != "X-and-Y" {
		t.Errorf("got %d logs, %d witnesses, quorum %s", len(p.Logs), len(p.Witnesses), p.Quorum)
	}
	want := []trustpolicy.Group{
		{Name: "X-witnesses", Threshold: 2, Members: []string{"X1", "X2", "X3"}},
		{Name: "Y-witnesses", Threshold: 1, Members: []string{"Y1", "Y2", "Y3"}},
		{Name: "X-and-Y", Threshold: 2, Members: []string{"X-witnesses", "Y-witnesses"}},
	}
	if !reflect.DeepEqual(p.Groups, want) {
		t.Errorf("got groups %v, want %v", p.Groups, want)
	}
}

func TestPoliciesThatTheTextAllowsAreAccepted(t *testing.T) {
	w := func(name string, n int) string {
		return "witness " + name + " " + key("w", trustpolicy.CosignedV1, n) + "\n"
	}
	_, mldsa, err := formats.GenerateMLDSAKey("pq.example/w")
	must.OK(t, err)
	for name, text := range map[string]string{
		"no witness":               "quorum none\n",
		"a single witness":         w("a", 1) + "quorum a\n",
		"witness with URL":         strings.TrimSuffix(w("a", 1), "\n") + " https://w.example/a\nquorum a\n",
		"tabs and trailing spaces": "\t quorum \t none \t\n",
		"names are octets":         w("\xff\x80K", 1) + w("\u212a", 2) + "group all all \xff\x80K \u212a\nquorum all\n",
		"a name with # and number": w("a#", 1) + w("#b", 2) + "group 1 1 a# #b\nquorum 1\n",
		"lines after the quorum":   "quorum none\n" + w("a", 1),
		"a quorum within a group":  w("a", 1) + "group g any a\nquorum a\n",
		"log and witness, one key": "log " + key("w", trustpolicy.Ed25519, 1) + "\n" + w("a", 1) + "quorum a\n",
		"ML-DSA":                   "log " + mldsa + "\nwitness a " + mldsa + "\nquorum a\n",
		"most witnesses and groups": many(trustpolicy.MaxOf, func(n int) string {
			return w(fmt.Sprint("w", n), n) + fmt.Sprintf("group g%d any w%d\n", n, n)
		}) + "quorum none\n",
		"most logs": many(trustpolicy.MaxOf, func(n int) string {
			return "log " + key("l", trustpolicy.Ed25519, n) + "\n"
		}) + "quorum none\n",
	} {
		if _, err := trustpolicy.Parse([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func many(n int, line func(n int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(line(i))
	}
	return b.String()
}

func TestOtherPoliciesAreRefusedWithTheirLine(t *testing.T) {
	log := "log " + key("l", trustpolicy.Ed25519, 1) + "\n"
	w := "witness a " + key("w", trustpolicy.CosignedV1, 1) + "\n"
	w2 := "witness b " + key("w", trustpolicy.CosignedV1, 2) + "\n"
	for text, want := range map[string]string{
		"":                                   "no quorum line",
		w:                                    "no quorum line",
		"quorum none":                        "line 1: the last line has no newline",
		"quorum none\r\n":                    "line 1: character 0x0d is not allowed",
		"quorum none\n#\x00\n":               "line 2: character 0x00 is not allowed",
		"quorum none\n#\x7f\n":               "line 2: character 0x7f is not allowed",
		"Quorum none\n":                      `line 1: unknown keyword "Quorum"`,
		"quorum\n":                           "line 1: a quorum has 0 items",
		"quorum none none\n":                 "line 1: a quorum has 2 items",
		"quorum none # c\n":                  "line 1: a quorum has 3 items",
		"quorum none\nquorum none\n":         "line 2: line 1 already defines the quorum",
		"quorum a\n" + w:                     `line 1: no line above defines the quorum "a"`,
		"log\n":                              "line 1: a log has 0 items",
		log[:len(log)-1] + " u v\n":          "line 1: a log has 3 items",
		log + "\n" + log:                     "line 3: the log in line 1 has the same public key",
		strings.Replace(w, "a ", "", 1):      "line 1: a witness has 1 items",
		w[:len(w)-1] + " u v\n":              "line 1: a witness has 4 items",
		strings.Replace(w, "a", "none", 1):   "line 1: the name none is reserved",
		w + strings.Replace(w2, "b", "a", 1): `line 2: line 1 already defines the name "a"`,
		w + strings.Replace(w, "a", "b", 1):  "line 2: the witness in line 1 has",
		w + "witness b " + key("other", trustpolicy.CosignedV1, 1) + "\n": "line 2: the witness in line 1 has",
		"log " + key("l", trustpolicy.CosignedV1, 1) + "\n":               "line 1: invalid key",
		"witness a " + key("w", trustpolicy.Ed25519, 1) + "\n":            "line 1: invalid key",
		"witness a " + key("w", 0x02, 1) + "\n":                           "line 1: invalid key",
		w + "group g any\n":                                               "line 2: a group has 2 items",
		w + "group none any a\n":                                          "line 2: the name none is reserved",
		w + "group a any a\n":                                             `line 2: line 1 already defines the name "a"`,
		w + "group g any none\n":                                          "line 2: none cannot be a member",
		w + "group g any b\n" + w2:                                        `line 2: no line above defines the member "b"`,
		w + "group g any g\n":                                             `line 2: no line above defines the member "g"`,
		w + "group g any a a\n":                                           `line 2: "a" is already a member`,
		w + "group g any a\ngroup h any g a\n":                            `line 3: "a" is already a member`,
		w + "group g 0 a\n":                                               `line 2: invalid threshold "0": use all, any`,
		w + "group g 2 a\n":                                               "line 2: invalid threshold",
		w + "group g 01 a\n":                                              "line 2: invalid threshold",
		w + "group g +1 a\n":                                              "line 2: invalid threshold",
		w + "group g -1 a\n":                                              "line 2: invalid threshold",
		w + "group g 0x1 a\n":                                             "line 2: invalid threshold",
		w + "group g ALL a\n":                                             "line 2: invalid threshold",
		w + "group g 18446744073709551617 a\n":                            "line 2: invalid threshold",
		strings.Repeat("#", trustpolicy.MaxSize) + "\n":                   "the file has more than 1048576 bytes",
		many(trustpolicy.MaxOf+1, func(n int) string {
			return "log " + key("l", trustpolicy.Ed25519, n) + "\n"
		}): "line 257: more than 256 logs",
		many(trustpolicy.MaxOf+1, func(n int) string {
			return fmt.Sprintf("witness w%d %s\n", n, key("w", trustpolicy.CosignedV1, n))
		}): "line 257: more than 256 witnesses",
		w + "group g0 any a\n" + many(trustpolicy.MaxOf, func(n int) string {
			return fmt.Sprintf("group g%d any g%d\n", n+1, n)
		}): "line 258: more than 256 groups",
	} {
		_, err := trustpolicy.Parse([]byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.80q: got error %v, want %s", text, err, want)
		}
	}
}

func TestOnlyTheCanonicalFormOfAKeyIsAccepted(t *testing.T) {
	k := keyOf("w.example", trustpolicy.CosignedV1, 1)
	vkey := k.String()
	id := fmt.Sprintf("%08x", k.ID)
	if got, err := trustpolicy.ParseKey(vkey, trustpolicy.WitnessTypes()...); err != nil || got != k {
		t.Errorf("got %v, %v", got, err)
	}
	long := k
	long.Public += "x"
	pq := trustpolicy.NewKey("pq", trustpolicy.CosignedMLD, make([]byte, 1311))
	named := trustpolicy.NewKey(strings.Repeat("n", 256), trustpolicy.CosignedMLD, make([]byte, 1312))
	for name, wrong := range map[string]string{
		"empty":             "",
		"no parts":          "w.example",
		"two parts":         "w.example+" + id,
		"no name":           strings.TrimPrefix(vkey, "w.example"),
		"other name":        "x" + vkey,
		"space":             strings.Replace(vkey, "w.", "w\u2003", 1),
		"invalid UTF-8":     strings.Replace(vkey, "w.", "w\xff", 1),
		"upper case":        strings.Replace(vkey, id, strings.ToUpper(id), 1),
		"wrong ID":          strings.Replace(vkey, id, "00000000", 1),
		"no ID":             strings.Replace(vkey, id, "", 1),
		"no material":       "w.example+" + id + "+",
		"not base64":        vkey[:len(vkey)-4] + "!!!!",
		"padding":           vkey + "=",
		"newline in base64": vkey[:len(vkey)-4] + "\n" + vkey[len(vkey)-4:],
		"33 bytes":          trustpolicy.NewKey("w", 4, []byte(long.Public)).String(),
		"31 bytes":          trustpolicy.NewKey("w", 4, []byte(k.Public[:31])).String(),
		"type of logs":      key("w", trustpolicy.Ed25519, 1),
		"ML-DSA, short":     pq.String(),
		"ML-DSA, long name": named.String(),
	} {
		if got, err := trustpolicy.ParseKey(wrong, trustpolicy.WitnessTypes()...); err == nil {
			t.Errorf("%s: %q is accepted as %v", name, wrong, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(example()))
	f.Add([]byte("quorum none\n"))
	f.Add([]byte("witness a\u00a0 " + key("w", trustpolicy.CosignedV1, 1) + " https://w.example/\u00a0\nquorum a\u00a0\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := trustpolicy.Parse(text)
		if err != nil {
			return
		}
		formatted := p.Format()
		again, err := trustpolicy.Parse(formatted)
		if err != nil {
			t.Fatalf("%q: %v", formatted, err)
		}
		if !reflect.DeepEqual(again, p) || !bytes.Equal(again.Format(), formatted) {
			t.Errorf("%q is parsed as another policy than %q", formatted, text)
		}
	})
}

func FuzzParseKey(f *testing.F) {
	f.Add(key("w.example", trustpolicy.CosignedV1, 1))
	f.Add(key("l.example", trustpolicy.Ed25519, 2))
	f.Fuzz(func(t *testing.T, text string) {
		k, err := trustpolicy.ParseKey(text, trustpolicy.Ed25519, trustpolicy.CosignedV1, trustpolicy.CosignedMLD)
		if err == nil && k.String() != text {
			t.Errorf("%q becomes %q", text, k)
		}
	})
}

// For a key of small order, anybody can sign checkpoints and cosign them.
func TestKeysOfSmallOrderAreRefused(t *testing.T) {
	for _, public := range ledgertest.SmallOrderKeys() {
		for _, kind := range []byte{trustpolicy.Ed25519, trustpolicy.CosignedV1} {
			vkey := trustpolicy.NewKey("log.example", kind, public).String()
			if _, err := trustpolicy.ParseKey(vkey, kind); err == nil || !strings.Contains(err.Error(), "Ed25519 key") {
				t.Errorf("%s: %v", vkey, err)
			}
		}
	}
}
