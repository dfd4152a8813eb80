package trustpolicy_test

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	formats "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/proof/trustpolicy"
)

const checkpoint = "log.example/1\n5\n" + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"

// signer returns a signer whose key is keyOf(name, kind, n).
func signer(t *testing.T, name string, kind byte, n int) note.Signer {
	t.Helper()
	k := keyOf(name, kind, n)
	skey := "PRIVATE+KEY+" + name + "+" + strings.Split(k.String(), "+")[1] + "+" +
		base64.StdEncoding.EncodeToString(append([]byte{kind}, private(n).Seed()...))
	if kind == trustpolicy.Ed25519 {
		return must.Get(note.NewSigner(skey))(t)
	}
	s, err := formats.NewSignerForCosignatureV1(skey)
	must.OK(t, err)
	return s
}

func sign(t *testing.T, text string, signers ...note.Signer) []byte {
	t.Helper()
	signed, err := note.Sign(&note.Note{Text: text}, signers...)
	must.OK(t, err)
	return signed
}

func TestTheQuorumOfTheExample(t *testing.T) {
	p := must.Get(trustpolicy.Parse([]byte(example())))(t)
	numbers := map[string]int{"X1": 11, "X2": 12, "X3": 13, "Y1": 21, "Y2": 22, "Y3": 23}
	for names, want := range map[string]bool{
		"":               false,
		"X1 X2":          false,
		"X1 Y1":          false,
		"Y1 Y2 Y3 X3":    false,
		"X1 X2 Y1":       true,
		"X2 X3 Y3":       true,
		"X1 X2 X3 Y1 Y2": true,
	} {
		signers := []note.Signer{signer(t, "log.example/1", trustpolicy.Ed25519, 1),
			signer(t, "stranger.example", trustpolicy.CosignedV1, 99)}
		for _, name := range strings.Fields(names) {
			signers = append(signers, signer(t, "w.example/"+name, trustpolicy.CosignedV1, numbers[name]))
		}

		v, err := p.Verify(sign(t, checkpoint, signers...))
		if (err == nil) != want {
			t.Errorf("cosigned by %s: got error %v, want a quorum: %v", names, err, want)
		}
		if len(v.Cosigned) != len(strings.Fields(names)) || v.Text != checkpoint {
			t.Errorf("cosigned by %s: got %v", names, v.Cosigned)
		}
		for _, c := range v.Cosigned {
			if time.Since(c.Time).Abs() > time.Minute || !strings.HasPrefix(c.Line, "— w.example/"+c.Witness) {
				t.Errorf("got cosignature %v", c)
			}
		}
	}
}

func TestSignaturesThatDoNotCount(t *testing.T) {
	log, w := signer(t, "log.example/1", trustpolicy.Ed25519, 1), signer(t, "w.example/a", trustpolicy.CosignedV1, 11)
	p, err := trustpolicy.Parse([]byte("log " + key("log.example/1", trustpolicy.Ed25519, 1) + "\n" +
		"witness a " + key("w.example/a", trustpolicy.CosignedV1, 11) + "\nquorum a\n"))
	must.OK(t, err)
	good := sign(t, checkpoint, log, w)
	other := sign(t, strings.Replace(checkpoint, "5", "6", 1), log, w)
	lines := strings.SplitAfter(string(good[len(checkpoint)+1:]), "\n")
	otherLines := strings.SplitAfter(string(other[len(checkpoint)+1:]), "\n")
	foreign := strings.Replace(checkpoint, "log.example/1", "log.example/2", 1)
	type invalid = *note.InvalidSignatureError

	for name, test := range map[string]struct {
		signed      string
		ok, invalid bool
	}{
		"both":                         {string(good), true, false},
		"in the other order":           {checkpoint + "\n" + lines[1] + lines[0], true, false},
		"repeated":                     {string(good) + lines[0] + lines[1], true, false},
		"no log":                       {checkpoint + "\n" + lines[1], false, false},
		"no witness":                   {checkpoint + "\n" + lines[0], false, false},
		"a wrong signature of the log": {checkpoint + "\n" + otherLines[0] + lines[1], false, true},
		"a wrong cosignature":          {checkpoint + "\n" + lines[0] + otherLines[1], false, true},
		"a wrong one after the right":  {string(good) + otherLines[1], false, true},
		"a wrong one before the right": {checkpoint + "\n" + lines[0] + otherLines[1] + lines[1], false, true},
		"another text":                 {string(other[:len(checkpoint)+1]) + lines[0] + lines[1], false, true},
		"another origin":               {string(sign(t, foreign, log, w)), false, false},
		"no time":                      {checkpoint + "\n" + lines[0] + untimed(lines[1]), false, true},
		"not a note":                   {checkpoint, false, false},
	} {
		_, err := p.Verify([]byte(test.signed))
		if (err == nil) != test.ok {
			t.Errorf("%s: got error %v", name, err)
		}
		if _, ok := errors.AsType[invalid](err); ok != test.invalid {
			t.Errorf("%s: got error %v, want an invalid signature: %v", name, err, test.invalid)
		}
	}
}

// untimed returns a signature line whose time is out of range.
func untimed(line string) string {
	name, encoded, _ := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "— "), " ")
	raw, _ := base64.StdEncoding.DecodeString(encoded)
	binary.BigEndian.PutUint64(raw[4:], 1<<63)
	return "— " + name + " " + base64.StdEncoding.EncodeToString(raw) + "\n"
}

func TestMLDSACosignaturesCount(t *testing.T) {
	skey, vkey, err := formats.GenerateMLDSAKey("pq.example/w")
	must.OK(t, err)
	subtree, err := formats.NewMLDSASigner(skey)
	must.OK(t, err)
	p := must.Get(trustpolicy.Parse([]byte("witness pq " + vkey + "\nquorum pq\n")))(t)
	log := keyOf("log.example/1", trustpolicy.Ed25519, 1)

	signed := sign(t, checkpoint, signer(t, "log.example/1", trustpolicy.Ed25519, 1), subtree)
	v, err := p.Verify(signed, log)
	must.OK(t, err)
	if len(v.Cosigned) != 1 || v.Cosigned[0].Witness != "pq" || v.Log != log {
		t.Errorf("got %+v", v)
	}
	found, err := p.Cosignatures(signed)
	if err != nil || len(found) != 1 {
		t.Errorf("got %v, %v", found, err)
	}
	if _, err := p.Verify(signed); err == nil {
		t.Error("a policy without logs accepts every log")
	}
}

// TestACosignatureWithoutTimeDoesNotCount: a witness that cosigns a subtree leaves out the
// time, and then says nothing about the largest size it has seen.
func TestACosignatureWithoutTimeDoesNotCount(t *testing.T) {
	skey, vkey, err := formats.GenerateMLDSAKey("pq.example/w")
	must.OK(t, err)
	subtree, err := formats.NewMLDSASigner(skey)
	must.OK(t, err)
	signature, err := subtree.SignSubtree(0, "log.example/1", 0, 5, make([]byte, 32))
	must.OK(t, err)
	signature = append(binary.BigEndian.AppendUint32(nil, subtree.KeyHash()), signature...)
	line := trustpolicy.LineOf(note.Signature{Name: subtree.Name(), Hash: subtree.KeyHash(),
		Base64: base64.StdEncoding.EncodeToString(signature)})
	p, err := trustpolicy.Parse([]byte("witness pq " + vkey + "\nquorum pq\n"))
	must.OK(t, err)
	signed := append(sign(t, checkpoint, signer(t, "log.example/1", trustpolicy.Ed25519, 1)), line...)
	_, err = p.Verify(signed, keyOf("log.example/1", trustpolicy.Ed25519, 1))
	if err == nil || !strings.Contains(err.Error(), `0 of 1 witnesses have cosigned it, which is not the quorum "pq"`) {
		t.Errorf("got error %v", err)
	}
}
