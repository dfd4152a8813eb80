package cmd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"os"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/rogpeppe/go-internal/testscript"
)

// scriptIDToken writes a token that the issuer https://issuer.example has issued to a job of the
// repository 1234, for an audience and an event. The first call also writes its keys to keys.json.
func scriptIDToken(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: idtoken FILE AUDIENCE EVENT")
	}
	now := time.Now()
	claims, err := json.Marshal(map[string]any{
		"iss": "https://issuer.example", "aud": args[1], "event_name": args[2], "jti": rand.Text(),
		"iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(),
		"repository_id": "1234", "ref": "refs/heads/main", "ref_type": "branch",
	})
	ts.Check(err)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: issuerKey(ts)}, nil)
	ts.Check(err)
	signed, err := signer.Sign(claims)
	ts.Check(err)
	token, err := signed.CompactSerialize()
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(token+"\n"), 0o600))
}

// issuerKey returns the key of the issuer of a script.
func issuerKey(ts *testscript.TestScript) jose.JSONWebKey {
	var key jose.JSONWebKey
	secret := ts.MkAbs("issuer.key")
	if text, err := os.ReadFile(secret); err == nil {
		ts.Check(json.Unmarshal(text, &key))
		return key
	}

	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	key = jose.JSONWebKey{Key: private, KeyID: "1", Algorithm: "ES256", Use: "sig"}
	text, err := json.Marshal(key)
	ts.Check(err)
	ts.Check(os.WriteFile(secret, text, 0o600))
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{key.Public()}})
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("keys.json"), keys, 0o600))
	return key
}
