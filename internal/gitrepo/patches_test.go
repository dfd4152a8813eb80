package gitrepo

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
)

const (
	gitPoem = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
	gitBlob = "\x00\x01\x02"
)

func TestGitRecord(t *testing.T) {
	gitrepotest.IgnoreConfig(t)
	for name, test := range map[string]struct {
		before, after gitrepotest.Tree
		want          []string
	}{
		"no changes": {
			gitrepotest.Tree{"a": gitrepotest.TextFile(gitPoem)}, gitrepotest.Tree{"a": gitrepotest.TextFile(gitPoem)},
			[]string{}},
		"added and deleted files have no hunks": {
			gitrepotest.Tree{"old": gitrepotest.TextFile(gitPoem)}, gitrepotest.Tree{"new": gitrepotest.TextFile("x\n")},
			[]string{"A new", "D old"}},
		"a line replaced, two added, two removed, with headings": {
			gitrepotest.Tree{"a": gitrepotest.TextFile(gitPoem)},
			gitrepotest.Tree{"a": gitrepotest.TextFile("one\n2\nthree\nx\ny\nfour\nfive\n")},
			[]string{"M a [2,1 +1 one] [3,0 +2 three] [6,2 +0 five]"}},
		"before the first line and after the last": {
			gitrepotest.Tree{"a": gitrepotest.TextFile(gitPoem)}, gitrepotest.Tree{
				"a": gitrepotest.TextFile("zero\n" + gitPoem + "eight\n")}, []string{"M a [0,0 +1 ] [7,0 +1 seven]"}},
		"an empty file is filled": {
			gitrepotest.Tree{"a": gitrepotest.TextFile("")}, gitrepotest.Tree{"a": gitrepotest.TextFile("x\ny\n")},
			[]string{"M a [0,0 +2 ]"}},
		"a file is emptied": {
			gitrepotest.Tree{"a": gitrepotest.TextFile("x\ny\n")}, gitrepotest.Tree{"a": gitrepotest.TextFile("")},
			[]string{"M a [1,2 +0 ]"}},
		"empty files added and renamed": {
			gitrepotest.Tree{"a": gitrepotest.TextFile(""), "c": gitrepotest.TextFile("x\n")},
			gitrepotest.Tree{"b": gitrepotest.TextFile(""), "c": gitrepotest.TextFile("x\n"), "d": gitrepotest.TextFile("")},
			[]string{"R a -> b", "A d"}},
		"an empty file deleted": {
			gitrepotest.Tree{"a": gitrepotest.TextFile(""), "b": gitrepotest.TextFile("")},
			gitrepotest.Tree{"b": gitrepotest.TextFile("")}, []string{"D a"}},
		"only the last line break": {
			gitrepotest.Tree{"a": gitrepotest.TextFile("x\ny")}, gitrepotest.Tree{"a": gitrepotest.TextFile("x\ny\n")},
			[]string{"M a [2,1 +1 x]"}},
		"no last line break on either side": {
			gitrepotest.Tree{"a": gitrepotest.TextFile("x\ny")}, gitrepotest.Tree{"a": gitrepotest.TextFile("x\nz")},
			[]string{"M a [2,1 +1 x]"}},
		"CRLF": {
			gitrepotest.Tree{"a": gitrepotest.TextFile("func a\r\nx\r\ny\r\n")},
			gitrepotest.Tree{"a": gitrepotest.TextFile("func a\r\nx\r\nz\r\n")}, []string{"M a [3,1 +1 x]"}},
		"LF becomes CRLF": {
			gitrepotest.Tree{"a": gitrepotest.TextFile("x\ny\n")}, gitrepotest.Tree{"a": gitrepotest.TextFile("x\r\ny\r\n")},
			[]string{"M a [1,2 +2 ]"}},
		"renamed": {
			gitrepotest.Tree{"a": gitrepotest.TextFile(gitPoem)}, gitrepotest.Tree{"b": gitrepotest.TextFile(gitPoem)},
			[]string{"R a -> b"}},
		"renamed and changed": {
			gitrepotest.Tree{"a": gitrepotest.TextFile(gitPoem)},
			gitrepotest.Tree{"d/b": gitrepotest.TextFile(gitPoem + "eight\n")}, []string{"R a -> d/b [7,0 +1 seven]"}},
		"renamed and changed beyond recognition": {
			gitrepotest.Tree{"a": gitrepotest.TextFile(gitPoem)},
			gitrepotest.Tree{"b": gitrepotest.TextFile("1\n2\n3\n4\nfive\n")}, []string{"D a", "A b"}},
		"a copy is a new file": {
			gitrepotest.Tree{"a": gitrepotest.TextFile(gitPoem)}, gitrepotest.Tree{"a": gitrepotest.TextFile(gitPoem + "x\n"),
				"b": gitrepotest.TextFile(gitPoem)}, []string{"M a [7,0 +1 seven]", "A b"}},
		"binaries": {
			gitrepotest.Tree{"changed": gitrepotest.TextFile(gitBlob), "gone": gitrepotest.TextFile(gitBlob + gitBlob),
				"text": gitrepotest.TextFile("x\n")},
			gitrepotest.Tree{"changed": gitrepotest.TextFile(gitBlob + "x"), "new": gitrepotest.TextFile("\x00"),
				"text": gitrepotest.TextFile("x\x00\n")},
			[]string{"M changed binary", "D gone binary", "A new binary", "M text binary"}},
		"an executable file": {
			gitrepotest.Tree{"a": gitrepotest.TextFile(gitPoem), "b": gitrepotest.TextFile(gitPoem + "b\n")},
			gitrepotest.Tree{"a": gitrepotest.ExecFile(gitPoem), "b": gitrepotest.ExecFile(gitPoem + "B\n")},
			[]string{"M a 100644>100755", "M b 100644>100755 [8,1 +1 seven]"}},
		"a changed link has no hunks": {
			gitrepotest.Tree{"a": gitrepotest.LinkFile("x")}, gitrepotest.Tree{"a": gitrepotest.LinkFile("y")}, []string{"M a"}},
		"a renamed link": {
			gitrepotest.Tree{"a": gitrepotest.LinkFile("x")}, gitrepotest.Tree{"b": gitrepotest.LinkFile("x")},
			[]string{"R a -> b"}},
		"changes of type between file, link and submodule": {
			gitrepotest.Tree{"a": gitrepotest.TextFile(gitPoem), "b": gitrepotest.LinkFile("x"),
				"c": gitrepotest.ModuleFile("1"), "d": gitrepotest.TextFile(gitBlob), "e": gitrepotest.TextFile("x\n")},
			gitrepotest.Tree{"a": gitrepotest.LinkFile("x"), "b": gitrepotest.ModuleFile("1"),
				"c": gitrepotest.TextFile(gitPoem), "d": gitrepotest.LinkFile("x"), "e": gitrepotest.TextFile("y\n")},
			[]string{"T a 100644>120000", "T b 120000>160000", "T c 160000>100644", "T d 100644>120000 binary",
				"M e [1,1 +1 ]"}},
		"a submodule": {
			gitrepotest.Tree{"a": gitrepotest.ModuleFile("1"), "z": gitrepotest.TextFile("x\n")}, gitrepotest.Tree{
				"a": gitrepotest.ModuleFile("2"), "b": gitrepotest.ModuleFile("3"), "z": gitrepotest.TextFile("y\n")},
			[]string{"M a", "A b", "M z [1,1 +1 ]"}},
		"a submodule that .gitmodules ignores": {
			gitrepotest.Tree{".gitmodules": gitrepotest.TextFile("[submodule \"a\"]\n\tpath = a\n\turl = x\n\tignore = all\n"),
				"a": gitrepotest.ModuleFile("1")},
			gitrepotest.Tree{".gitmodules": gitrepotest.TextFile("[submodule \"a\"]\n\tpath = a\n\turl = x\n\tignore = all\n"),
				"a": gitrepotest.ModuleFile("2")},
			[]string{"M a"}},
		"a file becomes a folder": {
			gitrepotest.Tree{"a": gitrepotest.TextFile("x\n")},
			gitrepotest.Tree{"a/b": gitrepotest.TextFile("completely\ndifferent\n")}, []string{"D a", "A a/b"}},
		"names": {
			gitrepotest.Tree{"with space": gitrepotest.TextFile("x\n"), `"quoted"`: gitrepotest.TextFile("x\n"),
				"tab\there": gitrepotest.TextFile("x\n"), "a\nb\ndiff --git a/x b/x": gitrepotest.TextFile("x\n"),
				"née": gitrepotest.TextFile("x\n"), `back\slash`: gitrepotest.TextFile("x\n"), "\xe9": gitrepotest.TextFile("x\n"),
				":(exclude)*": gitrepotest.TextFile("x\n")},
			gitrepotest.Tree{"with space": gitrepotest.TextFile("y\n"), `"quoted"`: gitrepotest.TextFile("y\n"),
				"tab\there": gitrepotest.TextFile("y\n"), "a\nb\ndiff --git a/x b/x": gitrepotest.TextFile("y\n"),
				"née": gitrepotest.TextFile("y\n"), `back\slash`: gitrepotest.TextFile("y\n"), "\xe9": gitrepotest.TextFile("y\n"),
				":(exclude)*": gitrepotest.TextFile("y\n")},
			[]string{`M "quoted" [1,1 +1 ]`, "M :(exclude)* [1,1 +1 ]", "M a\nb\ndiff --git a/x b/x [1,1 +1 ]",
				`M back\slash [1,1 +1 ]`,
				"M née [1,1 +1 ]", "M tab\there [1,1 +1 ]", "M with space [1,1 +1 ]", `M \351 [1,1 +1 ]`}},
		"a very long name": {
			gitrepotest.Tree{strings.Repeat(strings.Repeat("long", 24)+"/", 36) + "a": gitrepotest.TextFile("x\n"),
				"z": gitrepotest.TextFile("x\n")}, gitrepotest.Tree{strings.Repeat(strings.Repeat("long", 24)+"/", 36) +
				"a": gitrepotest.TextFile("y\n"), "z": gitrepotest.TextFile("y\n")},
			[]string{"M " + strings.Repeat(strings.Repeat("long", 24)+"/", 36) + "a [1,1 +1 ]", "M z [1,1 +1 ]"}},
		"content that looks like a patch": {
			gitrepotest.Tree{"a": gitrepotest.TextFile("-- a/a\n@@ -1 +1 @@\n\\ No newline at end of file\n"),
				"b": gitrepotest.TextFile("x\n")},
			gitrepotest.Tree{"a": gitrepotest.TextFile("++ b/a\ndiff --git a/b b/b\nBinary files a and b differ\n@@ -1 +1 " +
				"@@ x\n\\ No newline"), "b": gitrepotest.TextFile("y\n")},
			[]string{"M a [1,3 +5 ]", "M b [1,1 +1 ]"}},
		"a line longer than the buffer": {
			gitrepotest.Tree{"a": gitrepotest.TextFile("x\n" + strings.Repeat("long ", 50_000) + "\ny\n")},
			gitrepotest.Tree{"a": gitrepotest.TextFile("x\n" + strings.Repeat("long ", 60_000) + "\nz\n")},
			[]string{"M a [2,2 +2 x]"}},
		"a heading cut within a character": {
			gitrepotest.Tree{"a": gitrepotest.TextFile(strings.Repeat("é", 100) + "\nz" + strings.Repeat("é", 100) +
				"\n\n\nx\n")},
			gitrepotest.Tree{"a": gitrepotest.TextFile(strings.Repeat("é", 100) + "\nz" + strings.Repeat("é", 100) +
				"\n\n\ny\n")},
			[]string{"M a [5,1 +1 z" + strings.Repeat("é", 39) + "]"}},
		"a long file with all lines changed": {
			gitrepotest.Tree{"a": gitrepotest.TextFile(strings.Repeat("x\n", 2000))},
			gitrepotest.Tree{"a": gitrepotest.TextFile(strings.Repeat("y\n", 2000))}, []string{"M a [1,2000 +2000 ]"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, format := range []string{"sha1", "sha256"} {
				if format == "sha256" && hasModules(test.before, test.after) {
					continue // ModuleFile has ids of 40 digits
				}
				g, shas := newGitRepo(t, []string{"--object-format=" + format}, test.before, test.after)
				changes := mustRecord(t, g, shas[0], shas[1])
				if got := outline(changes); !slices.Equal(got, test.want) {
					t.Errorf("%s:\n%q, want\n%q", format, got, test.want)
				}
				for _, c := range changes {
					checkHunks(t, c, test.before, test.after)
				}
			}
		})
	}
}

func hasModules(trees ...gitrepotest.Tree) bool {
	for _, tree := range trees {
		for _, f := range tree {
			if f.Mode == "160000" {
				return true
			}
		}
	}
	return false
}

// The change record of a first commit adds all its files.
func TestGitRecordOfAFirstCommit(t *testing.T) {
	gitrepotest.IgnoreConfig(t)
	for _, format := range []string{"sha1", "sha256"} {
		g, shas := newGitRepo(t, []string{"--object-format=" + format}, gitrepotest.Tree{"a": gitrepotest.TextFile(gitPoem),
			"b/c": gitrepotest.TextFile(gitBlob), "l": gitrepotest.LinkFile("a")})
		r, err := g.ReadCommit(t.Context(), Query{Rev: "main"})
		if want := []string{"A a", "A b/c binary", "A l"}; err != nil || !slices.Equal(outline(r.Changes), want) {
			t.Errorf("%s: %q (%v), want %q", format, outline(r.Changes), err, want)
		}
		if r.Base != "" || !slices.Equal(r.Ancestors, shas) {
			t.Errorf("%s: base %q, ancestors %q of %q", format, r.Base, r.Ancestors, shas)
		}
	}
}

// The change record does not depend on git's configuration, its environment or
// attributes.
func TestGitRecordIgnoresConfiguration(t *testing.T) {
	gitrepotest.IgnoreConfig(t)
	before := gitrepotest.Tree{"a.c": gitrepotest.TextFile(gitPoem),
		"née.c": gitrepotest.TextFile("int f()\n{\n\tx;\n}\n"), "old.c": gitrepotest.TextFile(gitPoem + "old\n"),
		"bin": gitrepotest.TextFile(gitBlob), "sub": gitrepotest.ModuleFile("1"),
		"blanks.c": gitrepotest.TextFile("\n\n\nx\n\n\n"), "crlf": gitrepotest.TextFile("x\r\ny\r\n")}
	after := gitrepotest.Tree{"a.c": gitrepotest.TextFile("zero\n" + gitPoem + "eight"),
		"née.c": gitrepotest.TextFile("int f()\n{\n\ty;\n}\n"), "new.c": gitrepotest.TextFile(gitPoem + "new\n"),
		"bin": gitrepotest.TextFile(gitBlob + "x"), "sub": gitrepotest.ModuleFile("2"),
		"blanks.c": gitrepotest.TextFile("\n\n\ny \n\n\n\n"), "crlf": gitrepotest.TextFile("x\r\nz\r\n"),
		"copy.c": gitrepotest.TextFile(gitPoem)}
	g, shas := newGitRepo(t, nil, before, after)
	want := mustRecord(t, g, shas[0], shas[1])
	if n := len(want); n != 8 {
		t.Fatalf("%d changes: %q", n, outline(want))
	}
	same := func(t *testing.T) {
		t.Helper()
		if got := mustRecord(t, g, shas[0], shas[1]); !reflect.DeepEqual(got, want) {
			t.Errorf("%q, want\n%q", outline(got), outline(want))
		}
	}

	order := filepath.Join(t.TempDir(), "order")
	gitrepotest.WriteFile(t, order, "*.c\nbin\n")
	for _, setting := range []string{
		"diff.noprefix=true", "diff.mnemonicPrefix=true", "diff.srcPrefix=x/", "diff.algorithm=patience",
		"core.quotePath=false", "core.quotePath=true",
		"diff.renames=false", "diff.renames=copies", "diff.renameLimit=1", "diff.external=false", "color.ui=always",
		"color.diff=always", "diff.colorMoved=zebra",
		"diff.context=7", "diff.interHunkContext=10", "diff.orderFile=" + order, "core.autocrlf=true", "core.eol=crlf",
		"core.bigFileThreshold=1",
		"diff.indentHeuristic=true", "diff.suppressBlankEmpty=true", "diff.submodule=log", "diff.ignoreSubmodules=all",
		"diff.wsErrorHighlight=all",
		"diff.relative=true", "core.whitespace=cr-at-eol", "diff.default.xfuncname=nothing", "core.pager=false",
		"i18n.logOutputEncoding=latin1", "core.abbrev=4",
	} {
		name, value, _ := strings.Cut(setting, "=")
		t.Run("in the clone "+setting, func(t *testing.T) {
			mustGit(t, g, "", "config", name, value)
			same(t)
			mustGit(t, g, "", "config", "--unset", name)
		})
		t.Run("in the environment "+setting, func(t *testing.T) {
			t.Setenv("GIT_CONFIG_COUNT", "1")
			t.Setenv("GIT_CONFIG_KEY_0", name)
			t.Setenv("GIT_CONFIG_VALUE_0", value)
			same(t)
		})
	}
	for name, value := range map[string]string{
		"GIT_DIFF_OPTS": "-u5", "GIT_EXTERNAL_DIFF": "false", "GIT_LITERAL_PATHSPECS": "0", "GIT_DEFAULT_HASH": "sha256",
		"LC_ALL": "fr_FR.UTF-8", "LANGUAGE": "fr", "GIT_PREFIX": "sub/",
	} {
		t.Run("with "+name, func(t *testing.T) {
			t.Setenv(name, value)
			same(t)
		})
	}
	attributes := "*.c diff=c\nbin diff=show\ncrlf text eol=lf\nblanks.c binary\na.c -diff\n"
	for _, path := range []string{
		filepath.Join(g.Dir, ".gitattributes"), filepath.Join(g.Dir, ".git", "info", "attributes"),
		filepath.Join(os.Getenv("HOME"), ".config", "git", "attributes"),
	} {
		t.Run("with attributes in "+filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			gitrepotest.WriteFile(t, path, attributes)
			defer os.Remove(path)
			for name, value := range map[string]string{"diff.c.xfuncname": "x", "diff.show.textconv": "cat",
				"diff.show.command": "false", "diff.c.algorithm": "minimal", "diff.c.wordRegex": "."} {
				mustGit(t, g, "", "config", name, value)
			}
			same(t)
		})
	}
}
