package gitobject

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

// idOf returns the SHA-1 id of a commit object.
func idOf(object string) string {
	sum := sha1.Sum(append(header("commit", []byte(object)), object...))
	return hex.EncodeToString(sum[:])
}

func idOf256(object string) string {
	sum := sha256.Sum256(append(header("commit", []byte(object)), object...))
	return hex.EncodeToString(sum[:])
}

const (
	tree   = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n"
	parent = "parent 1111111111111111111111111111111111111111\n"
	author = "author Ada <ada@x> 1700000000 +0200\n"
	people = author + "committer Bob <bob@x> 1700000060 -0130\n"
)

func TestParse(t *testing.T) {
	object := tree + parent + strings.ReplaceAll(parent, "1", "2") + people +
		"mergetag object 1\n type commit\n \n tag v1\nHG:extra x\n\nSubject\n\nCo-authored-by: Cy <cy@x>\n"
	c, err := Parse(idOf(object), []byte(object))
	must.OK(t, err)
	if c.Tree != strings.Fields(tree)[1] || len(c.Parents) != 2 || c.Parents[1] != strings.Repeat("2", 40) {
		t.Errorf("tree %s, parents %s", c.Tree, c.Parents)
	}
	want := Person{ledger.Author{Name: "Ada", Email: "ada@x"}, 1700000000000, "+0200"}
	if c.Author != want || c.Committer.Name != "Bob" || c.Committer.At != 1700000060000 || c.Committer.Zone != "-0130" {
		t.Errorf("author %+v, committer %+v", c.Author, c.Committer)
	}
	if c.Message != "Subject\n\nCo-authored-by: Cy <cy@x>" ||
		fmt.Sprint(c.Writers()) != "[{Bob bob@x} {Cy cy@x}]" {
		t.Errorf("message %q, writers %v", c.Message, c.Writers())
	}
	if c.HasSSHSignature() {
		t.Error("has a signature")
	}
}

// What git's tools write is accepted, even if it is rare.
func TestParseAccepts(t *testing.T) {
	for name, test := range map[string]struct{ object, author, message string }{
		"no parents":          {tree + people + "\nx\n", "Ada <ada@x>", "x"},
		"no message":          {tree + people + "\n", "Ada <ada@x>", ""},
		"no empty line":       {tree + people, "Ada <ada@x>", ""},
		"message without \\n": {tree + people + "\nx", "Ada <ada@x>", "x"},
		"no name":             {tree + strings.Replace(people, "Ada <ada@x>", "<ada@x>", 1) + "\nx", " <ada@x>", "x"},
		"empty name": {tree + strings.Replace(people, "Ada <ada@x>", " <ada@x>", 1) + "\nx",
			" <ada@x>", "x"},
		"no email":           {tree + strings.Replace(people, "ada@x", "", 1) + "\nx", "Ada <>", "x"},
		"a long zone":        {tree + strings.Replace(people, "+0200", "+051800", 1) + "\nx", "Ada <ada@x>", "x"},
		"control characters": {tree + strings.Replace(people, "Ada", "A\x01d\ta\r", 1) + "\nx", "Ada <ada@x>", "x"},
		"Latin-1": {tree + strings.Replace(people, "Ada", "Jos\xe9", 1) + "encoding ISO-8859-1\n\n\xfc\n",
			"José <ada@x>", "ü"},
		"latin-1": {tree + strings.Replace(people, "Ada", "Jos\xe9", 1) + "encoding latin-1\n\n\xfc\n",
			"José <ada@x>", "ü"},
		"CP1251": {tree + strings.Replace(people, "Ada", "\xc0\xe4\xe0", 1) + "encoding cp1251\n\nx\n",
			"Ада <ada@x>", "x"},
		"Shift_JIS": {tree + strings.Replace(people, "Ada", "\x83A\x83_", 1) + "encoding Shift_JIS\n\nx\n",
			"アダ <ada@x>", "x"},
		"no encoding": {tree + strings.Replace(people, "Ada", "Jos\xe9 é", 1) + "\nx\n",
			"José é <ada@x>", "x"},
		"UTF-8, but is not": {tree + strings.Replace(people, "Ada", "Jos\xe9", 1) + "encoding UTF-8\n\nx\n",
			"José <ada@x>", "x"},
		"unknown encoding": {tree + strings.Replace(people, "Ada", "Jos\xe9", 1) + "encoding x-none\n\nx\n",
			"José <ada@x>", "x"},
		// Its letters would be others.
		"an encoding without ASCII": {tree + people + "encoding UTF-16\n\nx\n", "Ada <ada@x>", "x"},
		"several tags":              {tree + people + "mergetag a\n b\nmergetag c\n\nx\n", "Ada <ada@x>", "x"},
		"PGP": {tree + people + "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n\nx\n",
			"Ada <ada@x>", "x"},
	} {
		c, err := Parse(idOf(test.object), []byte(test.object))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := c.Author.Name + " <" + c.Author.Email + ">"; got != test.author || c.Message != test.message {
			t.Errorf("%s: %s, %q", name, got, c.Message)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	wide := strings.Repeat(parent, 65)
	for name, test := range map[string]struct{ object, why string }{
		"nothing":          {"", "tree is missing"},
		"text":             {"hello", "tree is missing"},
		"a truncated tree": {tree[:20], "tree is missing"},
		"a short tree":     {"tree 4b825d\n" + people + "\n", "tree"},
		"a tree in upper case": {strings.ToUpper(tree)[:5] + strings.ToUpper(tree)[5:] + people + "\n",
			"tree is missing"},
		"upper-case hex":        {"tree " + strings.ToUpper(tree[5:]) + people + "\n", "not an object ID"},
		"a SHA-256 tree":        {"tree " + strings.Repeat("a", 64) + "\n" + people + "\n", "not an object ID"},
		"two trees":             {tree + tree + people + "\n", "author is missing"},
		"a parent too late":     {tree + people + parent + "\n", "parent is misplaced"},
		"a short parent":        {tree + "parent 11\n" + people + "\n", "parent \"11\" is not"},
		"65 parents":            {tree + wide + people + "\n", "too many parents"},
		"no author":             {tree + people[len(author):] + "\n", "author is missing"},
		"no committer":          {tree + author + "\n", "committer is missing"},
		"two authors":           {tree + author + people + "\n", "committer is missing"},
		"another author later":  {tree + people + author + "\n", "author is misplaced"},
		"two committers":        {tree + people + people[len(author):] + "\n", "committer is misplaced"},
		"the committer first":   {tree + people[len(author):] + author + "\n", "author is missing"},
		"two encodings":         {tree + people + "encoding utf-8\nencoding latin1\n\n", "encoding"},
		"an empty encoding":     {tree + people + "encoding \n\n", "encoding"},
		"two signatures":        {tree + people + "gpgsig a\ngpgsig b\n\n", "gpgsig is given twice"},
		"an empty signature":    {tree + people + "gpgsig \ngpgsig b\n\n", "gpgsig is given twice"},
		"a continued committer": {tree + people + " x\n\n", "continues no header"},
		"a continued author":    {tree + author + " x\n" + people[len(author):] + "\n", "committer is missing"},
		"no header name":        {tree + people + "\x01 x\n\n", "not the name of a header"},
		"truncated":             {tree + people + "gpgsig -----BEGIN", "does not end"},
		"truncated, continued":  {tree + people + "gpgsig a\n b", "does not end"},
		"NUL in the header":     {tree + strings.Replace(people, "Ada", "A\x00", 1) + "\n", "NUL"},
		"NUL in the message":    {tree + people + "\nx\x00y\n", "NUL"},
		"no brackets":           {tree + "author Ada 1 +0000\n", "author"},
		"no end":                {tree + "author Ada <a@x 1 +0000\n", "author"},
		"brackets in a name":    {tree + strings.Replace(people, "Ada", "A>a", 1) + "\n", "author"},
		"brackets in an email":  {tree + strings.Replace(people, "ada@x", "a<a", 1) + "\n", "author"},
		"two addresses":         {tree + strings.Replace(people, "<ada@x>", "<ada@x> <b@x>", 1) + "\n", "for a time"},
		"no space":              {tree + strings.Replace(people, "Ada ", "Ada", 1) + "\n", "no space"},
		"no time":               {tree + strings.Replace(people, " 1700000000 +0200", "", 1) + "\n", "author"},
		"no zone":               {tree + strings.Replace(people, " +0200", "", 1) + "\n", "for a time"},
		"a zone in words":       {tree + strings.Replace(people, "+0200", "+CEST", 1) + "\n", "for a time"},
		"a zone without sign":   {tree + strings.Replace(people, "+0200", "00200", 1) + "\n", "for a time"},
		"a negative time":       {tree + strings.Replace(people, "1700000000", "-1", 1) + "\n", "for a time"},
		"an endless time": {tree + strings.Replace(people, "1700000000", strings.Repeat("9", 21), 1) + "\n",
			"for a time"},
		"text after the zone": {tree + strings.Replace(people, "+0200", "+0200 x", 1) + "\n", "for a time"},
		"a long name": {tree + strings.Replace(people, "Ada", strings.Repeat("x", 321), 1) + "\n",
			"321 bytes"},
		"101 co-authors": {tree + people + "\n" + manyAuthors(101), "more than 100 co-authors"},
	} {
		_, err := Parse(idOf(test.object), []byte(test.object))
		wantFault(t, name, err, test.why)
	}

	fits := tree + people + "\n" + manyAuthors(100)
	if _, err := Parse(idOf(fits), []byte(fits)); err != nil {
		t.Errorf("100 co-authors: %v", err)
	}
}

// The committer comes first if a forge could be taken for it, and nobody is left out who has no name.
func TestWriters(t *testing.T) {
	const ann, forge = "Ann <ann@x>", "F <noreply@github.com>"
	for name, test := range map[string]struct{ committer, message, want string }{
		"the author alone":             {ann, "", "[]"},
		"a co-author":                  {ann, "Co-authored-by: Bob", "[{Bob }]"},
		"a forge commits":              {forge, "", "[{F noreply@github.com}]"},
		"a forge commits with another": {forge, "Co-authored-by: Bob", "[{F noreply@github.com} {Bob }]"},
		"a co-author named like one":   {ann, "Co-authored-by: " + forge, "[{Ann ann@x} {F noreply@github.com}]"},
		"no committer":                 {" <>", "", "[{ }]"},
		"no co-author":                 {ann, "Co-authored-by: <>", "[{ }]"},
	} {
		object := fmt.Appendf(nil, "tree %040x\nauthor %s 1 +0000\ncommitter %s 1 +0000\n\nA\n\n%s\n", 1, ann, test.committer,
			test.message)
		c, err := Decode(strings.Repeat("0", 40), object)
		if err != nil {
			t.Fatal(name, err)
		}
		if got := fmt.Sprint(c.Writers()); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func manyAuthors(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "Co-authored-by: A%d <a%d@x>\n", i, i)
	}
	return b.String()
}

// wantFault checks that an error is about the field object.
func wantFault(t *testing.T, name string, err error, why string) {
	t.Helper()
	fault, ok := err.(*ledger.Error) //nolint:errorlint // it is not wrapped
	if !ok || len(fault.Fields) != 1 || fault.Fields[0].Field != "object" ||
		!strings.Contains(fault.Fields[0].Message, why) {
		t.Errorf("%s: %v, want %q about object", name, err, why)
	}
}

func TestParseChecksTheHash(t *testing.T) {
	object := tree + people + "\nx\n"
	big := tree + people + "\n" + strings.Repeat("x", MaxSize-len(tree+people)-1)
	for name, test := range map[string]struct{ id, object, why string }{
		"another commit":  {strings.Repeat("1", 40), object, "its hash is " + idOf(object)},
		"another SHA-256": {strings.Repeat("1", 64), object, "its hash is " + idOf256(object)},
		"truncated":       {idOf(object), object[:len(object)-1], "its hash is"},
		"one more byte":   {idOf(object), object + "\n", "its hash is"},
		"not an id":       {"HEAD", object, "not a commit ID"},
		"too large":       {idOf(big + "x"), big + "x", "at most 1048576"},
	} {
		_, err := Parse(test.id, []byte(test.object))
		wantFault(t, name, err, test.why)
	}

	c, err := Parse(idOf(big), []byte(big))
	if err != nil || len(c.Message) > 64<<10 {
		t.Errorf("of 1 MiB: %v", err)
	}
	object = "tree " + strings.Repeat("a", 64) + "\n" + people + "\nx\n"
	if _, err := Parse(idOf256(object), []byte(object)); err != nil {
		t.Errorf("SHA-256: %v", err)
	}
}

// The published collision is found behind any header, such as one that an attacker could
// make for an object of git.
func TestCollisionAttackIsRefused(t *testing.T) {
	var ids []string
	for _, name := range []string{"shattered-1.bin", "shattered-2.bin"} {
		content, err := os.ReadFile(filepath.Join("testdata", name))
		must.OK(t, err)
		sum := sha1.Sum(content)
		ids = append(ids, hex.EncodeToString(sum[:]))
		for _, at := range []int{0, 10, 64, 200} {
			wantFault(t, name, checkID(ids[0], content[:at], content[at:]), "collision attack")
		}

		// With the header of a commit, it does not collide. It is malformed.
		_, err = Parse(idOf(string(content)), content)
		wantFault(t, name, err, "NUL")
		_, err = Parse(ids[0], content)
		wantFault(t, name, err, "its hash is")
		wrapped := tree + people + "\n" + string(content)
		_, err = Parse(idOf(wrapped), []byte(wrapped))
		wantFault(t, name, err, "NUL")
	}
	if ids[0] != ids[1] {
		t.Errorf("the fixtures do not collide: %s", ids)
	}
}

func TestClaimsThatContradict(t *testing.T) {
	object := tree + parent + people + "\nx\n"
	c, err := Parse(idOf(object), []byte(object))
	must.OK(t, err)
	own := ledger.Registration{Branch: "b", Object: []byte(object), Parents: c.Parents, Author: c.Author.Author,
		Committer: c.Committer.Author, Message: "x\n", CommittedAt: c.Committer.At}
	n, err := c.Complete(own)
	if err != nil || n.Branch != "b" || n.Message != "x" {
		t.Errorf("the same claims: %+v, %v", n, err)
	}
	if n, err := c.Complete(ledger.Registration{}); err != nil || !slices.Equal(n.Parents, c.Parents) ||
		n.Author != own.Author || n.Committer != own.Committer || n.CommittedAt != own.CommittedAt || n.Message != "x" {
		t.Errorf("completed: %+v, %v", n, err)
	}

	for field, change := range map[string]func(n *ledger.Registration){
		"parents":         func(n *ledger.Registration) { n.Parents = []string{strings.Repeat("3", 40)} },
		"author.name":     func(n *ledger.Registration) { n.Author.Name = "Eve" },
		"author.email":    func(n *ledger.Registration) { n.Author.Email = "eve@x" },
		"committer.name":  func(n *ledger.Registration) { n.Committer.Name = "Eve" },
		"committer.email": func(n *ledger.Registration) { n.Committer.Email = "eve@x" },
		"message":         func(n *ledger.Registration) { n.Message = "y" },
		"committed_at":    func(n *ledger.Registration) { n.CommittedAt++ },
	} {
		n := own
		change(&n)
		_, err := c.Complete(n)
		fault, ok := err.(*ledger.Error) //nolint:errorlint // it is not wrapped
		if !ok || len(fault.Fields) != 1 || fault.Fields[0].Field != field {
			t.Errorf("another %s: %v", field, err)
		}
	}
	own.Parents = []string{}
	if _, err := c.Complete(own); err == nil {
		t.Error("accepted a claim of no parents")
	}
}

// A message that was cut, as the record of a commit shows it, does not contradict the object.
func TestClaimOfLongMessage(t *testing.T) {
	const trailer = "\n\nCo-authored-by: Bob <bob@x>"
	for name, message := range map[string]string{
		"no trailers":               strings.Repeat("x", 70<<10),
		"a co-author":               strings.Repeat("x", 70<<10) + trailer,
		"a space at the cut":        strings.Repeat("x", maxMessage-3) + strings.Repeat(" ", 9<<10) + "x",
		"a line break at the cut":   strings.Repeat(strings.Repeat("x", 7)+"\n", 9<<10),
		"a character over the cut":  "x" + strings.Repeat("ü", 35<<10),
		"one byte too long":         strings.Repeat("x", maxMessage+1),
		"as long as it may be":      strings.Repeat("x", maxMessage),
		"too many trailers to keep": "x" + strings.Repeat(trailer[1:], 100) + strings.Repeat("\nx", 35<<10),
	} {
		object := tree + people + "\n" + message + "\n"
		c, err := Parse(idOf(object), []byte(object))
		must.OK(t, err)
		for _, claim := range []string{c.Message, strings.TrimSpace(c.Message), MessageText(message)} {
			n := ledger.Registration{Message: claim}
			if err := c.CheckClaims(n); err != nil || n.Check() != nil {
				t.Errorf("%s, a claim of %d bytes: %.200v, %v", name, len(claim), err, n.Check())
			}
		}
	}
}

// FuzzParse checks that no object makes the parser panic, and that the texts it returns fit
// what the ledger stores.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", tree, tree + people + "\nx\n", tree + parent + people + "gpgsig a\n b\nencoding latin1\n\n\xe9",
		tree + people + "gpgsig -----BEGIN SSH SIGNATURE-----\n U1NIU0lH\n -----END SSH SIGNATURE-----\n\nx",
	} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, object []byte) {
		id := idOf(string(object))
		c, err := Parse(id, object)
		if err != nil {
			wantFault(t, "object", err, "")
			return
		}
		if _, err := c.VerifySSH(); err == nil && !c.HasSSHSignature() {
			t.Error("verified no signature")
		}
		n, err := c.Complete(ledger.Registration{})
		if err != nil || n.Check() != nil {
			t.Errorf("%q: %v, %v", object, err, n.Check())
		}
		if again, err := Decode(id, c.Object); err != nil || again.Message != c.Message {
			t.Errorf("decoded again: %v", err)
		}
	})
}
