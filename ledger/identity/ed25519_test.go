package identity_test

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509/pkix"
	"encoding/base64"
	"io"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

// A point is an affine point of Ed25519's curve, −x² + y² = 1 + dx²y² (RFC 8032).
type point struct{ x, y *big.Int }

// An edwards does the arithmetic of the curve, slowly.
type edwards struct{ p, d, order *big.Int }

func newEdwards() edwards {
	number := func(s string) *big.Int { n, _ := new(big.Int).SetString(s, 0); return n }
	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	d := new(big.Int).Mul(big.NewInt(-121665), new(big.Int).ModInverse(big.NewInt(121666), p))
	order := number("0x1000000000000000000000000000000014def9dea2f79cd65812631a5cf5d3ed")
	return edwards{p, d.Mod(d, p), order}
}

func (e edwards) mul(ns ...*big.Int) *big.Int {
	product := big.NewInt(1)
	for _, n := range ns {
		product.Mod(product.Mul(product, n), e.p)
	}
	return product
}

func (e edwards) add(a, b point) point {
	t := e.mul(e.d, a.x, b.x, a.y, b.y)
	x := new(big.Int).Add(e.mul(a.x, b.y), e.mul(a.y, b.x))
	y := new(big.Int).Add(e.mul(a.y, b.y), e.mul(a.x, b.x))
	one := big.NewInt(1)
	return point{e.mul(x, new(big.Int).ModInverse(new(big.Int).Add(one, t), e.p)),
		e.mul(y, new(big.Int).ModInverse(e.mul(new(big.Int).Sub(one, t)), e.p))}
}

func (e edwards) times(n *big.Int, a point) point {
	sum := point{big.NewInt(0), big.NewInt(1)}
	for i := n.BitLen() - 1; i >= 0; i-- {
		if sum = e.add(sum, sum); n.Bit(i) == 1 {
			sum = e.add(sum, a)
		}
	}
	return sum
}

// at returns a point with the given y, if there is one.
func (e edwards) at(y *big.Int) (a point, ok bool) {
	square := e.mul(y, y)
	above := new(big.Int).Sub(square, big.NewInt(1))
	below := new(big.Int).Add(e.mul(e.d, square), big.NewInt(1))
	x := new(big.Int).ModSqrt(e.mul(above, new(big.Int).ModInverse(below, e.p)), e.p)
	return point{x, y}, x != nil
}

// torsion returns the eight points of small order.
func (e edwards) torsion() (points []point) {
	four, identityY := big.NewInt(4), big.NewInt(1)
	for y := big.NewInt(2); ; y.Add(y, big.NewInt(1)) {
		a, ok := e.at(y)
		if !ok {
			continue
		}
		a = e.times(e.order, a)
		if half := e.times(four, a); half.y.Cmp(identityY) == 0 && half.x.Sign() == 0 {
			continue // the order is less than 8
		}
		for i := range int64(8) {
			points = append(points, e.times(big.NewInt(i), a))
		}
		return points
	}
}

// encodings returns all encodings of a point that fit in 32 bytes: y, or y plus p, with
// the sign of x, or with either sign if x is 0.
func (e edwards) encodings(a point) (keys []ed25519.PublicKey) {
	for _, y := range []*big.Int{a.y, new(big.Int).Add(a.y, e.p)} {
		if y.BitLen() > 255 {
			continue
		}
		key := encodeY(y)
		key[31] |= byte(a.x.Bit(0)) << 7
		keys = append(keys, key)
		if a.x.Sign() == 0 {
			signed := slices.Clone(key)
			signed[31] ^= 0x80
			keys = append(keys, signed)
		}
	}
	return keys
}

func encodeY(y *big.Int) ed25519.PublicKey {
	key := y.FillBytes(make([]byte, ed25519.PublicKeySize))
	slices.Reverse(key)
	return key
}

// Every encoding of every point of small order is refused.
func TestSmallOrderRefused(t *testing.T) {
	e := newEdwards()
	points := e.torsion()
	var keys []ed25519.PublicKey
	for _, a := range points {
		keys = append(keys, e.encodings(a)...)
	}
	if len(points) != 8 || len(keys) != 14 {
		t.Fatalf("%d points with %d encodings, want 8 with 14", len(points), len(keys))
	}

	for _, key := range keys {
		_, err := identity.NewIdentity{Kind: identity.KeyIdentity, PEM: ledgertest.PublicPEM(key),
			DN: "cn=ci,ou=build,o=acme"}.Identity()
		ledgertest.WantCode(t, err, ledger.CodeInvalidField)
		ledgertest.WantField(t, err, "pem")
		if err == nil || !strings.Contains(err.Error(), "small order") && !strings.Contains(err.Error(), "canonically") {
			t.Errorf("%x: %v", key, err)
		}
	}
}

// Every encoding that is not canonical is refused, and nothing next to it.
func TestNonCanonicalRefused(t *testing.T) {
	e := newEdwards()
	for i := int64(-30); i < 19; i++ {
		key := encodeY(new(big.Int).Add(e.p, big.NewInt(i)))
		for range 2 {
			key[31] ^= 0x80
			err := identity.CheckKey(key)
			if got, want := err != nil, i >= 0 || i == -1; got != want { // p−1 is of small order
				t.Errorf("p%+d, %x: got error %v, want one: %v", i, key, err, want)
			}
		}
	}
	for i := range int64(30) {
		key := encodeY(big.NewInt(i))
		if err := identity.CheckKey(key); (err != nil) != (i < 2) {
			t.Errorf("y = %d: %v", i, err)
		}
	}
	if err := identity.CheckKey(ed25519.PublicKey{1, 2, 3}); err == nil {
		t.Error("a key of three bytes was accepted")
	}
}

// A key that is the sum of a proper one and a point of small order has an owner, so it is
// not refused.
func TestMixedOrderAccepted(t *testing.T) {
	e := newEdwards()
	for range 10 {
		pub, _, _ := ed25519.GenerateKey(rand.Reader)
		if err := identity.CheckKey(pub); err != nil {
			t.Errorf("%x: %v", pub, err)
		}
		y := slices.Clone(pub)
		y[31] &= 0x7f
		slices.Reverse(y)
		a, ok := e.at(new(big.Int).SetBytes(y))
		if !ok {
			t.Fatalf("%x is not a point", pub)
		}
		for _, small := range e.torsion() {
			key := e.encodings(e.add(a, small))[0]
			if err := identity.CheckKey(key); err != nil {
				t.Errorf("%x: %v", key, err)
			}
		}
	}
}

// A forger signs everything in the name of the neutral point: S = 0 and R = 0·B − k·A,
// which is the neutral point again.
type forger struct{}

func (forger) Public() crypto.PublicKey {
	return ed25519.PublicKey(append([]byte{1}, make([]byte, 31)...))
}

func (forger) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return append([]byte{1}, make([]byte, 63)...), nil
}

// If an earlier version stored a key of small order, the other identities can be used,
// and nothing is verified with this one.
func TestSmallOrderStored(t *testing.T) {
	pub := forger{}.Public().(ed25519.PublicKey)
	forged, _ := forger{}.Sign(nil, nil, nil)
	if !ed25519.Verify(pub, []byte("anything"), forged) {
		t.Fatal("the forged signature does not match")
	}

	good := ledgertest.NewP256()
	weak := ledgertest.KeyIdentity(ledgertest.NewP256().Public())
	weak.ID, weak.PEM, weak.Fingerprint = "idn_weak", ledgertest.PublicPEM(pub), ledgertest.Must(identity.Fingerprint(pub))
	ca := ledgertest.NewCert(nil, pkix.Name{CommonName: "weak CA"}, forger{}, ledgertest.AsCA)
	root := ledgertest.RootIdentity(ledgertest.NewRoot().Cert)
	root.ID, root.PEM = "idn_ca", ledgertest.CertPEM(ca.Cert)
	org := ledgertest.Keyring(weak, root, ledgertest.KeyIdentity(good.Public()))

	leafOfWeak := ledgertest.NewCert(ca, ledgertest.CIName(), ledgertest.NewP256(), ledgertest.AsSigner)
	weakLeaf := ledgertest.NewCert(ca, ledgertest.CIName(), forger{}, ledgertest.AsSigner)
	unhinted := signedBy(func([]byte) []byte { return forged })
	rawBytes := func(c *ledgertest.Party) string { return base64.StdEncoding.EncodeToString(c.Cert.Raw) }
	ofWeakLeaf := strings.Replace(
		string(bundleOf([]*ledgertest.Party{leafOfWeak})), rawBytes(leafOfWeak), rawBytes(weakLeaf), 1)
	for name, test := range map[string]struct {
		body   []byte
		org    *identity.Keyring
		code   ledger.Code
		detail string
	}{
		"another key": {ledgertest.Must(attestation.SignDSSE(good, ledgertest.Passed())), org, "", ""},
		"a keyid": {[]byte(strings.Replace(string(unhinted), `{"sig"`, `{"keyid":"`+weak.Fingerprint+`","sig"`, 1)), org,
			ledger.CodeUntrustedIdentity, "registered key of cn=ci,ou=build,o=acme: the Ed25519 key is a point of small order"},
		"no keyid": {unhinted, org, ledger.CodeUntrustedIdentity, "no trusted key"},
		"its certificate": {[]byte(ofWeakLeaf), org, ledger.CodeUntrustedIdentity,
			"certificate of cn=ci,ou=build,o=acme: the Ed25519 key is a point of small order"},
		"a CA in the envelope": {bundleOf([]*ledgertest.Party{leafOfWeak, ca}), org, ledger.CodeUntrustedIdentity,
			"certificate of cn=weak CA: the Ed25519 key is a point of small order"},
		"a registered CA": {bundleOf([]*ledgertest.Party{leafOfWeak}), org, ledger.CodeUntrustedIdentity,
			"chains to a root that is not supported: the Ed25519 key is a point of small order"},
		"revoked": {bundleOf([]*ledgertest.Party{leafOfWeak}), ledgertest.Keyring(ledgertest.Revoked(root)),
			ledger.CodeRevokedIdentity, ""},
	} {
		_, err := attestation.Verify(test.body, test.org, ledgertest.Now)
		ledgertest.WantCode(t, err, test.code)
		if err != nil && !strings.Contains(err.Error(), test.detail) {
			t.Errorf("%s: got error %q, want %q in it", name, err, test.detail)
		}
	}

	for _, n := range []identity.NewIdentity{
		{Kind: identity.RootIdentity, PEM: ledgertest.CertPEM(ca.Cert)},
		{Kind: identity.KeyIdentity, PEM: ledgertest.CertPEM(weakLeaf.Cert)},
	} {
		_, err := n.Identity()
		ledgertest.WantField(t, err, "pem")
	}
}
