package gitobject

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// Parse parses the commit object with the given id, as git cat-file commit prints it. It
// computes its hash, which must be the id. Every error is a field error about the field
// object.
func Parse(id string, object []byte) (*Commit, error) {
	if len(object) > MaxSize {
		return nil, faultf("%d bytes: at most %d", len(object), MaxSize)
	}
	if err := checkID(id, header("commit", object), object); err != nil {
		return nil, err
	}
	return Decode(id, object)
}

// Decode is like Parse, but does not compute the hash. It is for objects that Parse has
// accepted before.
func Decode(id string, object []byte) (*Commit, error) {
	p := parser{rest: object, commit: &Commit{ID: id, Object: object}}
	if err := p.parse(); err != nil {
		return nil, err
	}
	return p.commit, p.commit.check()
}

// Lineage returns the parents in a commit object that Parse has accepted, and the committer's time, which is 0 if the
// ledger does not accept it. The object may be cut after LineageSize bytes.
func Lineage(id string, object []byte) (parents []string, at ledger.Time, err error) {
	p := parser{rest: object, commit: &Commit{ID: id}}
	if err := p.parseLineage(); err != nil {
		return nil, 0, err
	}
	err = p.parsePeople()
	return p.commit.Parents, p.rawCommitter.at, err
}

// LineageSize is how many bytes of a commit object have what Lineage returns.
const LineageSize = 8 << 10

// check returns an error if the ledger cannot store what the object says.
func (c *Commit) check() error {
	if len(c.CoAuthors) > ledger.MaxCoAuthors {
		return faultf("the message names more than %d co-authors", ledger.MaxCoAuthors)
	}
	for _, a := range append([]ledger.Author{c.Author.Author, c.Committer.Author}, c.CoAuthors...) {
		for _, name := range []string{a.Name, a.Email} {
			if len(name) > maxName {
				return faultf("a name or an e-mail address has %d bytes: at most %d (%s)", len(name), maxName, text.Quote(name))
			}
		}
	}
	return nil
}

// A parser parses a commit object: header lines, an empty line, and the message. It is as
// strict as git fsck, with two exceptions for objects that git's tools do write: a name may
// be missing before an e-mail address, and a zone may have up to six digits, as imports
// from other systems have.
type parser struct {
	rest          []byte
	line          int
	commit        *Commit
	rawAuthor     ident
	rawCommitter  ident
	hasSignatures [2]bool
}

// An ident is an author or committer before its text is decoded.
type ident struct {
	name, email []byte
	at          ledger.Time
	zone        string
}

func (p *parser) parse() error {
	if bytes.IndexByte(p.rest, 0) >= 0 {
		return faultf("contains a NUL byte")
	}
	if err := p.parseLineage(); err != nil {
		return err
	}
	if err := p.parsePeople(); err != nil {
		return err
	}
	if err := p.parseOthers(); err != nil {
		return err
	}

	c := p.commit
	decode := decoderOf(c.encoding)
	c.Author, c.Committer = p.rawAuthor.person(decode), p.rawCommitter.person(decode)
	message := decode(p.rest)
	c.CoAuthors, c.Message = ledger.CoAuthors(message), MessageText(message)
	return nil
}

// parseLineage parses the tree and the parents.
func (p *parser) parseLineage() error {
	value, ok := p.take("tree")
	if !ok {
		return p.faultf("tree is missing")
	}
	if p.commit.Tree = string(value); !p.isID(p.commit.Tree) {
		return p.faultf("tree %s is not an object ID of %d hex digits", text.Quote(p.commit.Tree), len(p.commit.ID))
	}

	for {
		value, ok := p.take("parent")
		if !ok {
			return nil
		}
		id := string(value)
		if !p.isID(id) {
			return p.faultf("parent %s is not an object ID of %d hex digits", text.Quote(id), len(p.commit.ID))
		}
		if len(p.commit.Parents) == maxParents {
			return p.faultf("too many parents: at most %d", maxParents)
		}
		p.commit.Parents = append(p.commit.Parents, id)
	}
}

// isID reports whether s is an id of the same hash function as the commit's.
func (p *parser) isID(s string) bool { return len(s) == len(p.commit.ID) && text.IsHex(s) }

func (p *parser) parsePeople() (err error) {
	for _, part := range []struct {
		key   string
		ident *ident
	}{{"author", &p.rawAuthor}, {"committer", &p.rawCommitter}} {
		value, ok := p.take(part.key)
		if !ok {
			return p.faultf("%s is missing", part.key)
		}
		if *part.ident, err = p.ident(part.key, value); err != nil {
			return err
		}
	}
	return nil
}

// The headers that an object has once, after those that parseLineage and parsePeople read.
var signatureHeaders = [...]string{"gpgsig", "gpgsig-sha256"}

// parseOthers parses the headers after the committer, up to the message.
func (p *parser) parseOthers() error {
	for {
		if len(p.rest) == 0 {
			return nil // no message, and no empty line: as git fsck accepts it
		}
		if rest, ok := bytes.CutPrefix(p.rest, []byte("\n")); ok {
			p.rest = rest
			return nil
		}
		key, value, err := p.header()
		if err != nil {
			return err
		}
		if err := p.addOther(key, value); err != nil {
			return err
		}
	}
}

func (p *parser) addOther(key string, value []byte) error {
	switch key {
	case "tree", "parent", "author", "committer":
		return p.faultf("%s is misplaced or given twice", key)
	case "encoding":
		if p.commit.encoding != "" || len(value) == 0 || bytes.IndexByte(value, '\n') >= 0 {
			return p.faultf("encoding is empty or given twice")
		}
		p.commit.encoding = string(value)
	}
	for i, name := range signatureHeaders {
		if key != name {
			continue
		}
		if p.hasSignatures[i] {
			return p.faultf("%s is given twice", key)
		}
		p.hasSignatures[i], p.commit.signatures[i] = true, string(value)+"\n"
	}
	return nil
}

// take parses the next line if its header has the given key.
func (p *parser) take(key string) (value []byte, ok bool) {
	rest, ok := bytes.CutPrefix(p.rest, []byte(key+" "))
	if !ok {
		return nil, false
	}
	value, rest, ok = bytes.Cut(rest, []byte("\n"))
	if !ok {
		return nil, false
	}
	p.rest = rest
	p.line++
	return value, true
}

// header parses the next header with the lines that continue it, which start with a space.
func (p *parser) header() (key string, value []byte, err error) {
	line, err := p.nextLine()
	if err != nil {
		return "", nil, err
	}
	name, value, _ := bytes.Cut(line, []byte(" "))
	if len(name) == 0 {
		return "", nil, p.faultf("the line continues no header")
	}
	if bytes.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", nil, p.faultf("%s is not the name of a header", text.Quote(string(name)))
	}

	value = value[:len(value):len(value)]
	for bytes.HasPrefix(p.rest, []byte(" ")) {
		if line, err = p.nextLine(); err != nil {
			return "", nil, err
		}
		value = append(append(value, '\n'), line[1:]...)
	}
	return string(name), value, nil
}

func (p *parser) nextLine() ([]byte, error) {
	line, rest, ok := bytes.Cut(p.rest, []byte("\n"))
	p.line++
	if !ok {
		return nil, p.faultf("the header does not end (the object is truncated)")
	}
	p.rest = rest
	return line, nil
}

// ident parses a name, an e-mail address in brackets, Unix seconds and a zone.
func (p *parser) ident(key string, value []byte) (id ident, err error) {
	name, rest, ok := bytes.Cut(value, []byte("<"))
	email, times, ok2 := bytes.Cut(rest, []byte("> "))
	if !ok || !ok2 || bytes.ContainsAny(name, ">") || bytes.ContainsAny(email, "<>") {
		return id, p.faultf("%s %s is not a name with an e-mail address in <> and a time", key, text.Quote(string(value)))
	}
	if len(name) > 0 && name[len(name)-1] != ' ' {
		return id, p.faultf("%s %s has no space before the e-mail address", key, text.Quote(string(value)))
	}

	seconds, zone, _ := strings.Cut(string(times), " ")
	at, err := parseSeconds(seconds)
	if err != nil || !isZone(zone) {
		return id, p.faultf("%s has %s for a time (git writes Unix seconds and an offset, e.g. 1790000000 +0200)",
			key, text.Quote(string(times)))
	}
	return ident{name, email, at, zone}, nil
}

// parseSeconds parses Unix seconds. The result is 0 for times that the ledger does not
// accept.
func parseSeconds(s string) (ledger.Time, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, err
	}
	const last = 253402300799 // of the year 9999
	if n > last {
		return 0, nil
	}
	return ledger.Time(n) * 1000, nil
}

func isZone(s string) bool {
	const shortest, longest = len("+0200"), len("+051800")
	if len(s) < shortest || len(s) > longest || s[0] != '+' && s[0] != '-' {
		return false
	}
	return strings.Trim(s[1:], "0123456789") == ""
}

func (id ident) person(decode decoder) Person {
	return Person{Author: ledger.Author{Name: PlainText(decode(id.name)), Email: PlainText(decode(id.email))},
		At: id.at, Zone: id.zone}
}

// faultf returns an error about the last parsed line, or the one after it.
func (p *parser) faultf(format string, args ...any) *ledger.Error {
	return faultf("is malformed near line "+strconv.Itoa(max(p.line, 1))+": "+format, args...)
}
