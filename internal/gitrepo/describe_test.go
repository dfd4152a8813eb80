package gitrepo

import (
	"reflect"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/gitobject"
)

// A description is the commit object alone, which says the rest.
func TestDescribe(t *testing.T) {
	f := gitrepotest.NewForest(t)
	f.Git("commit", "-q", "--allow-empty", "--author", "Eve <eve@x>", "-m", "One", "-m", "Co-authored-by: Bob <bob@x>")
	f.Git("commit", "-q", "--allow-empty", "-m", "Two")
	g := Repo{Dir: f.Dir}

	c, err := g.Describe(t.Context(), "HEAD~1")
	must.OK(t, err)
	if want := (ledger.Registration{Object: c.Object}); !reflect.DeepEqual(c.Registration, want) {
		t.Errorf("%+v", c)
	}
	o, err := gitobject.Parse(c.SHA, c.Object)
	if err != nil || o.Author.Name != "Eve" || o.Committer.Name != "Ada" || len(o.CoAuthors) != 1 {
		t.Errorf("the object: %+v, %v", o, err)
	}
	if c, err := g.Describe(t.Context(), strings.Repeat("ab", 20)); err != nil || c.SHA != "" {
		t.Errorf("missing: %+v, %v", c, err)
	}
}

// What replaces a commit in this clone alone is not what its id stands for. A shallow clone
// lacks parents, but not the object that names them.
func TestDescribeReadsTheObjectItself(t *testing.T) {
	f := gitrepotest.NewForest(t)
	f.Git("commit", "-q", "--allow-empty", "-m", "One")
	f.Git("commit", "-q", "--allow-empty", "-m", "Two")
	first, second := f.Git("rev-parse", "HEAD~1"), f.Git("rev-parse", "HEAD")
	f.Git("replace", second, f.Git("commit-tree", "-m", "Other", "-p", first, second+"^{tree}"))
	shallow := t.TempDir()
	gitrepotest.Git(t, shallow, "", "clone", "-q", "--depth=1", "file://"+f.Dir, ".")

	for _, dir := range []string{f.Dir, shallow} {
		c, err := Repo{Dir: dir}.ReadCommit(t.Context(), Query{Rev: second})
		must.OK(t, err)
		if o, err := gitobject.Parse(second, c.Object); err != nil || o.Message != "Two" || o.Parents[0] != first {
			t.Errorf("%s: %+v, %v", dir, o, err)
		}
		if c.Parents != nil || c.Author.Name != "" {
			t.Errorf("%s: claims what the object says: %+v", dir, c.Registration)
		}
	}
}

// The ledger refuses some objects that git accepts. Their commits are registered without.
func TestDescribeWithoutTheObject(t *testing.T) {
	f := gitrepotest.NewForest(t)
	long := strings.Repeat(strings.Repeat("x", 99)+"\n", 11000)
	gitrepotest.Git(t, f.Dir, long, "commit", "-q", "--allow-empty", "-F", "-")
	c, err := Repo{Dir: f.Dir}.Describe(t.Context(), "HEAD")
	if err != nil || c.Object != nil || c.Author.Name != "Ada" || c.Check() != nil {
		t.Errorf("over 1 MiB: %+v, %v, %v", c.Author, err, c.Check())
	}

	tree := f.Git("rev-parse", "HEAD^{tree}")
	odd := gitrepotest.Git(t, f.Dir, "tree "+tree+"\nauthor Ada <ada@x> 1 z\ncommitter Ada <ada@x> 1 +0000\n\nx\n",
		"hash-object", "-w", "-t", "commit", "--literally", "--stdin")
	c, err = Repo{Dir: f.Dir}.Describe(t.Context(), odd)
	if err != nil || c.Object != nil || c.Author.Name != "Ada" || c.Check() != nil {
		t.Errorf("malformed: %+v, %v, %v", c.Author, err, c.Check())
	}
}

// Fields that the object proves are not sent in addition to it: the ledger may store them in another form, such
// as a cut message.
func TestObjectIsSentAlone(t *testing.T) {
	f := gitrepotest.NewForest(t)
	f.Commit("file", "x\n")
	for name, message := range map[string]string{
		"a short message":          "One",
		"a message of 70 KiB":      strings.Repeat(strings.Repeat("x", 99)+"\n", 717),
		"70 KiB, with a co-author": strings.Repeat("x\n", 35<<10) + "\nCo-authored-by: Bob <bob@x>",
	} {
		gitrepotest.Git(t, f.Dir, message, "commit", "-q", "--allow-empty", "-F", "-")
		g := Repo{Dir: f.Dir}
		described := must.Get(g.Describe(t.Context(), "HEAD"))(t)
		read := must.Get(g.ReadCommit(t.Context(), Query{Rev: "HEAD"}))(t)
		for _, c := range []Commit{described, read} {
			n := ledger.Registration{Object: c.Object, Branch: c.Branch, Base: c.Base, Ancestors: c.Ancestors,
				Changes: c.Changes}
			if c.Object == nil || !reflect.DeepEqual(c.Registration, n) {
				t.Errorf("%s: %+v", name, c.Registration)
			}
		}
	}
}
