package storetest

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
)

// Object returns a commit object with a tree, the nth of its author, and its id.
func Object(tree int, author string, n int) (id string, raw []byte) {
	return ObjectOn(fmt.Sprintf("%040x", n), tree, author, n)
}

// ObjectOn is like Object, with a parent.
func ObjectOn(parent string, tree int, author string, n int) (id string, raw []byte) {
	who := fmt.Sprintf("%s <%s@example.org> %d +0000", author, strings.ToLower(author), 1_780_000_000+n)
	raw = fmt.Appendf(nil, "tree %040x\nparent %s\nauthor %s\ncommitter %s\n\ncommit %d\n", tree, parent, who, who, n)
	sum := sha1.Sum(fmt.Appendf(nil, "commit %d\x00%s", len(raw), raw)) //nolint:gosec // git's object ids
	return hex.EncodeToString(sum[:]), raw
}
