package storetest

import (
	"bytes"
	"crypto"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"github.com/ledgerd/ledgerd/internal/must"
)

// Object returns a commit object with a tree, the nth of its author, and its id.
func Object(tree int, author string, n int) (id string, raw []byte) {
	return ObjectOn(fmt.Sprintf("%040x", n), tree, author, n)
}

// ObjectOn is like Object, with a parent, or without if that is empty.
func ObjectOn(parent string, tree int, author string, n int) (id string, raw []byte) {
	who := fmt.Sprintf("%s <%s@example.org> %d +0000", author, strings.ToLower(author), 1_780_000_000+n)
	if parent != "" {
		parent = "\nparent " + parent
	}
	raw = fmt.Appendf(nil, "tree %040x%s\nauthor %s\ncommitter %s\n\ncommit %d\n", tree, parent, who, who, n)
	return objectID(raw), raw
}

// SignObject returns a commit object with an SSH signature for a namespace, and its id.
func SignObject(t testing.TB, key crypto.Signer, namespace string, raw []byte) (id string, signed []byte) {
	t.Helper()
	signer := must.Get(ssh.NewSignerFromKey(key))(t)
	sig, err := sshsig.Sign(bytes.NewReader(raw), signer, sshsig.HashSHA512, namespace)
	must.OK(t, err)
	armor := bytes.ReplaceAll(bytes.TrimSuffix(sshsig.Armor(sig), []byte("\n")), []byte("\n"), []byte("\n "))
	signed = bytes.Replace(raw, []byte("\n\n"), slices.Concat([]byte("\ngpgsig "), armor, []byte("\n\n")), 1)
	return objectID(signed), signed
}

// objectID returns the id of a commit object.
func objectID(raw []byte) string {
	sum := sha1.Sum(fmt.Appendf(nil, "commit %d\x00%s", len(raw), raw)) //nolint:gosec // git's object ids
	return hex.EncodeToString(sum[:])
}
