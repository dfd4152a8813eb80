package server

import (
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
)

// A rawCommit is a commit object with its id.
type rawCommit struct{ sha, text string }

// rawCommitOf returns a commit object by an author, a committer and a message, each as git
// writes it.
func rawCommitOf(author, committer, message string) rawCommit {
	const tree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
	text := fmt.Sprintf("tree %s\nparent %s\nauthor %s 1700000000 +0000\ncommitter %s 1700000060 +0100\n\n%s\n",
		tree, commitID(1), author, committer, message)
	return rawCommit{objectID(text), text}
}

func objectID(text string) string {
	sum := sha1.Sum(fmt.Appendf(nil, "commit %d\x00%s", len(text), text))
	return hex.EncodeToString(sum[:])
}

// body returns the body of a registration with the object and other members.
func (c rawCommit) body(members string) string {
	return fmt.Sprintf(`{"object":%q%s}`, base64.StdEncoding.EncodeToString([]byte(c.text)), members)
}

// A false claim is corrected by the object, and cannot be made again.
func TestObjectCorrectsClaims(t *testing.T) {
	b := newBackend(t)
	ada := b.signer("cn=Ada,ou=dev,o=acme")
	eve := b.signer("cn=Eve,ou=dev,o=acme")
	b.setPolicy(`"requirements":[{"state":"PROMOTABLE","predicate":"review:*","exclude_author":true}]`)
	raw := rawCommitOf("Ada <ada@acme.example>", "Bob <bob@acme.example>", "Pay\n\nCo-authored-by: Cy <cy@acme.example>")

	// Ada says that Eve wrote it, and that Dan did so too.
	b.register(raw.sha, fmt.Sprintf(`{"author":{"name":"Eve","email":"eve@acme.example"},"committer":{"name":"Dan"},
		"message":"No","parents":[%q],"committed_at":"2020-01-01T00:00:00Z"}`, commitID(9))).want(201)
	b.passes(ada, raw.sha, "review:code")
	b.expect("by the claim", raw.sha, ledger.Promotable, "")
	if c := b.commit(raw.sha); c.Proven || c.Tree != "" {
		t.Errorf("proven %v, tree %q", c.Proven, c.Tree)
	}

	b.register(raw.sha, raw.body("")).want(200)
	b.expect("by the object", raw.sha, ledger.Attested, "by the commit's author")
	c := b.commit(raw.sha)
	if !c.Proven || c.Tree != "4b825dc642cb6eb9a060e54bf8d69288fbee4904" || c.Author.Name != "Ada" ||
		c.Author.Email != "ada@acme.example" || !strings.HasPrefix(c.Message, "Pay\n\n") ||
		fmt.Sprint(c.Parents) != "["+commitID(1)+"]" || c.CommittedAt.String() != "2023-11-14T22:14:20.000Z" ||
		fmt.Sprint(c.Writers) != "[{Bob bob@acme.example} {Cy cy@acme.example}]" {
		t.Errorf("the record: %+v", c)
	}
	var corrected []string
	for _, v := range c.Corrections {
		corrected = append(corrected, fmt.Sprintf("%s %s: %s → %s", v.By, v.Field, v.Before, v.After))
	}
	want := []string{
		"commit object committed_at: 2020-01-01T00:00:00.000Z → 2023-11-14T22:14:20.000Z",
		"commit object message: No → Pay\n\nCo-authored-by: Cy <cy@acme.example>",
		"commit object parents: " + commitID(9) + " → " + commitID(1),
		"commit object writers: Dan <> → Bob <bob@acme.example>, Cy <cy@acme.example>",
		"commit object author: Eve <eve@acme.example> → Ada <ada@acme.example>",
	}
	if fmt.Sprint(corrected) != fmt.Sprint(want) {
		t.Errorf("corrections:\n%s\nwant\n%s", strings.Join(corrected, "\n"), strings.Join(want, "\n"))
	}

	// Eve counts: she did not write it. Ada, Bob and Cy do not, and no claim changes that.
	b.passes(eve, raw.sha, "review:code")
	b.expect("another reviewer", raw.sha, ledger.Promotable, "")
	for field, body := range map[string]string{
		"author.name": `{"author":{"name":"Eve"}}`, "author.email": `{"author":{"email":"eve@acme.example"}}`,
		"committer.name": `{"committer":{"name":"Eve"}}`, "message": `{"message":"Co-authored-by: Eve <eve@acme.example>"}`,
		"parents": fmt.Sprintf(`{"parents":[%q]}`, commitID(9)), "committed_at": `{"committed_at":"2020-01-01T00:00:00Z"}`,
	} {
		b.register(raw.sha, body).wantFields(422, ledger.CodeInvalidField, field)
	}
	b.register(raw.sha, fmt.Sprintf(`{"author":{"name":"Ada"},"committer":{"email":"bob@acme.example"},
		"message":"Pay\n\nCo-authored-by: Cy <cy@acme.example>\n","parents":[%q],"branch":"b"}`, commitID(1))).want(200)
	b.register(raw.sha, raw.body(`,"author":{"name":"Ada"}`)).want(200)
	b.register(raw.sha, raw.body(`,"author":{"name":"Eve"}`)).wantFields(422, ledger.CodeInvalidField, "author.name")
	if c := b.commit(raw.sha); len(c.Corrections) != len(want) || c.State != ledger.Promotable || c.Branch != "b" {
		t.Errorf("after the same again: %+v", c)
	}
}

func TestObjectIsAnnounced(t *testing.T) {
	b := newBackend(t)
	raw := rawCommitOf("Ada <ada@x>", "Ada <ada@x>", "Pay")
	b.register(raw.sha, `{"author":{"name":"Eve"}}`).want(201)
	b.register(raw.sha, raw.body("")).want(200)
	b.register(raw.sha, raw.body("")).want(200) // nothing new
	other := rawCommitOf("Ada <ada@x>", "Ada <ada@x>", "Other")
	b.register(other.sha, other.body("")).want(201)

	for query, want := range map[string]int{"": 0, "&repo=api": 0, "&types=commit": 3, "&types=commit&repo=api": 3,
		"&types=commit,radar,policy&repo=api": 3, "&types=attestation,state,policy,radar,violation&repo=api": 0} {
		page := decode[ledger.Page[ledger.CommitEvent]](b.get("/v1/orgs/acme/events?limit=100" + query).want(200))
		var list []string
		for _, e := range page.Data {
			if e.Type == ledger.EventCommit {
				list = append(list, fmt.Sprintf("%s proven %t, corrected %v", e.Commit, e.Tree != "", e.Corrected))
			}
		}
		announced := []string{raw.sha + " proven false, corrected []",
			raw.sha + " proven true, corrected [{author Eve <> Ada <ada@x>}]", other.sha + " proven true, corrected []"}
		if !slices.Equal(list, announced[:want]) {
			t.Errorf("%s: %q", query, list)
		}
	}
}

func TestWrongObjectsAreRefused(t *testing.T) {
	b := newBackend(t)
	raw := rawCommitOf("Ada <ada@x>", "Ada <ada@x>", "Pay")
	big := rawCommitOf("Ada <ada@x>", "Ada <ada@x>", strings.Repeat("x", 1<<20))
	malformed := rawCommit{text: "tree x\n"}
	malformed.sha = objectID(malformed.text)
	truncated := rawCommit{raw.sha, raw.text[:100]}

	for name, test := range map[string]struct{ sha, body string }{
		"another commit":  {commitID(1), raw.body("")},
		"another SHA-256": {strings.Repeat("a", 64), raw.body("")},
		"truncated":       {raw.sha, truncated.body("")},
		"empty":           {raw.sha, `{"object":""}`},
		"malformed":       {malformed.sha, malformed.body("")},
		"too large":       {big.sha, big.body("")},
		"the radar":       {commitID(1), ""},
	} {
		if name == "the radar" {
			b.post("/v1/orgs/acme/repos/api/radar", fmt.Sprintf(`{"commit":%q,%s`, test.sha, raw.body("")[1:])).
				wantFields(422, ledger.CodeInvalidField, "object")
			continue
		}
		t.Log(name)
		b.register(test.sha, test.body).wantFields(422, ledger.CodeInvalidField, "object")
	}
	p := b.register(raw.sha, `{"object":"not base64!"}`).wantProblem(400, ledger.CodeInvalidJSON)
	if len(p.Errors) != 1 || p.Errors[0].Field != "object" {
		t.Errorf("not base64: %+v", p)
	}
	for _, sha := range []string{raw.sha, big.sha, commitID(1)} {
		b.get(commitPath(sha)).wantProblem(404, ledger.CodeNotFound)
	}

	// The largest object fits the default limit of bodies.
	most := rawCommitOf("Ada <ada@x>", "Ada <ada@x>", strings.Repeat("x", 1<<20-len(raw.text)+len("Pay")))
	if len(most.text) != 1<<20 {
		t.Fatalf("%d bytes", len(most.text))
	}
	b.register(most.sha, most.body("")).want(201)
}
