package attestation

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
)

// The names of outcomes. They are injective: what differs in a statement differs in the
// name. So names are percent-encoded (RFC 3986), and the characters that structure them,
// which are : + and =, occur only unencoded.

// maxName is the maximum length of an outcome's name, in bytes.
const maxName = 128

// defaultName is the name of an outcome whose statement has none.
const defaultName = "default"

// outcomeName returns the name of an outcome: the kind of evidence and a label. If it is
// longer than maxName, its end is replaced by ~ and a SHA-256.
func outcomeName(kind, label string) string {
	name := kind + ":" + label
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	end := "~" + hex.EncodeToString(sum[:])
	return name[:maxName-len(end)] + end
}

// escape percent-encodes text, except letters, digits, and . _ / -. It also encodes a /
// at the start, so that no name contains ://, as the URIs of predicate types do.
func escape(text string) string {
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case c == '/' && i == 0:
			b.WriteString("%2F")
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("._/-", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// labelOf returns the label for a name in a statement. An empty one is default.
func labelOf(name string) string {
	switch name {
	case "":
		return defaultName
	case defaultName:
		return "%64efault"
	}
	return escape(name)
}

// labelsOf returns the label for a set of names: sorted, and joined by +.
func labelsOf(labels []string) string {
	if len(labels) == 0 {
		return defaultName
	}
	return strings.Join(slices.Sorted(slices.Values(labels)), "+")
}

// uriLabel returns the label for a URI. The scheme https is left out, another one stays:
// https://ci.example/a is ci.example/a, and pkg:github/acme/scan is itself.
func uriLabel(uri string) string {
	if rest, ok := strings.CutPrefix(uri, "https://"); ok && rest != "" {
		return labelOf(rest)
	}
	scheme, rest, ok := strings.Cut(uri, ":")
	switch {
	case uri == "":
		return defaultName
	case !ok || !isScheme(scheme):
		return ":" + escape(uri)
	}
	return scheme + ":" + escape(rest)
}

func isScheme(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '+' && r != '-' && r != '.'
	})
}

// isRepo reports whether s is the name of a repo, as org/name.
func isRepo(s string) bool {
	org, name, ok := strings.Cut(s, "/")
	return ok && ledger.CheckOrg(org) == nil && ledger.CheckRepo(name) == nil
}

// withoutVersion returns a URI without a version at its end, such as /v0.2.
func withoutVersion(uri string) string {
	slash := strings.LastIndexByte(uri, '/')
	version, ok := strings.CutPrefix(uri[slash+1:], "v")
	if slash < 0 || !ok || version == "" || strings.Trim(version, "0123456789.") != "" {
		return uri
	}
	return uri[:slash]
}
