package gitobject

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"

	"github.com/ledgerd/ledgerd/ledger"
)

// A decoder converts text of a commit object to valid UTF-8.
type decoder func(raw []byte) string

// decoderOf returns the decoder for the encoding header of a commit object, which is empty
// if there is none. Git writes objects in any encoding. Those that are not known, and text
// that is not valid in its encoding, are read as UTF-8 with Latin-1 for the bytes that are
// not valid in it, which is how git corrects such text.
func decoderOf(name string) decoder {
	e := find(name)
	if e == nil {
		return decodeUTF8
	}
	return func(raw []byte) string {
		decoded, err := e.NewDecoder().Bytes(raw)
		if err != nil || !utf8.Valid(decoded) {
			return decodeUTF8(raw)
		}
		return string(decoded)
	}
}

// find returns a known encoding, or nil. Only encodings that include ASCII are used, since
// the rest of an object is ASCII.
func find(name string) encoding.Encoding {
	const maxEncoding = 64
	if name == "" || len(name) > maxEncoding || strings.EqualFold(name, "utf-8") || strings.EqualFold(name, "utf8") {
		return nil
	}
	if strings.EqualFold(name, "latin-1") { // as git has it
		name = "iso-8859-1"
	}
	e, err := ianaindex.IANA.Encoding(name)
	if err != nil || e == nil {
		if e, err = htmlindex.Get(name); err != nil {
			return nil
		}
	}

	const ascii = "\t\n !\"#$%&'()*+,-./09:;<=>?@AZ[]^_`az{|}"
	decoded, err := e.NewDecoder().String(ascii)
	if err != nil || decoded != ascii {
		return nil
	}
	return e
}

func decodeUTF8(raw []byte) string {
	if utf8.Valid(raw) {
		return string(raw)
	}
	var b strings.Builder
	for len(raw) > 0 {
		r, size := utf8.DecodeRune(raw)
		if r == utf8.RuneError && size == 1 {
			r = rune(raw[0])
		}
		b.WriteRune(r)
		raw = raw[size:]
	}
	return b.String()
}

// PlainText returns a name or an e-mail address as the ledger stores it: valid UTF-8,
// trimmed, and without control characters. Git accepts any bytes.
func PlainText(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD")))
}

// maxMessage is the ledger's limit for a commit message, in bytes.
const maxMessage = 64 << 10

// MessageText returns a commit message as the ledger stores it: valid UTF-8, trimmed, and
// cut to 64 KiB. It retains the co-authors, who are usually at the end.
func MessageText(s string) string {
	s = strings.TrimSpace(strings.ToValidUTF8(s, "\uFFFD"))
	if len(s) <= maxMessage {
		return s
	}
	trailers := "\n\n" + strings.Join(ledger.CoAuthorTrailers(s), "\n")
	if len(trailers) > maxMessage {
		trailers = "" // too many to register
	}
	return strings.ToValidUTF8(s[:maxMessage-len(trailers)], "") + trailers
}
