package cmd

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const (
	gitPoem = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
	gitBlob = "\x00\x01\x02"
)

func TestGitRecord(t *testing.T) {
	useNoGitConfig(t)
	for name, test := range map[string]struct {
		before, after gitTree
		want          []string
	}{
		"nothing": {
			gitTree{"a": textFile(gitPoem)}, gitTree{"a": textFile(gitPoem)}, []string{}},
		"a new file and one that is gone have no hunks": {
			gitTree{"old": textFile(gitPoem)}, gitTree{"new": textFile("x\n")}, []string{"A new", "D old"}},
		"a line replaced, two added, two removed; the heading is git's": {
			gitTree{"a": textFile(gitPoem)}, gitTree{"a": textFile("one\n2\nthree\nx\ny\nfour\nfive\n")},
			[]string{"M a [2,1 +1 one] [3,0 +2 three] [6,2 +0 five]"}},
		"before the first line and after the last": {
			gitTree{"a": textFile(gitPoem)}, gitTree{"a": textFile("zero\n" + gitPoem + "eight\n")}, []string{"M a [0,0 +1 ] [7,0 +1 seven]"}},
		"an empty file is filled": {
			gitTree{"a": textFile("")}, gitTree{"a": textFile("x\ny\n")}, []string{"M a [0,0 +2 ]"}},
		"a file is emptied": {
			gitTree{"a": textFile("x\ny\n")}, gitTree{"a": textFile("")}, []string{"M a [1,2 +0 ]"}},
		"empty files come, go and move": {
			gitTree{"a": textFile(""), "c": textFile("x\n")}, gitTree{"b": textFile(""), "c": textFile("x\n"), "d": textFile("")}, []string{"R a -> b", "A d"}},
		"an empty file goes": {
			gitTree{"a": textFile(""), "b": textFile("")}, gitTree{"b": textFile("")}, []string{"D a"}},
		"only the last line break": {
			gitTree{"a": textFile("x\ny")}, gitTree{"a": textFile("x\ny\n")}, []string{"M a [2,1 +1 x]"}},
		"no last line break on either side": {
			gitTree{"a": textFile("x\ny")}, gitTree{"a": textFile("x\nz")}, []string{"M a [2,1 +1 x]"}},
		"CRLF": {
			gitTree{"a": textFile("func a\r\nx\r\ny\r\n")}, gitTree{"a": textFile("func a\r\nx\r\nz\r\n")}, []string{"M a [3,1 +1 x]"}},
		"LF becomes CRLF": {
			gitTree{"a": textFile("x\ny\n")}, gitTree{"a": textFile("x\r\ny\r\n")}, []string{"M a [1,2 +2 ]"}},
		"renamed": {
			gitTree{"a": textFile(gitPoem)}, gitTree{"b": textFile(gitPoem)}, []string{"R a -> b"}},
		"renamed and changed": {
			gitTree{"a": textFile(gitPoem)}, gitTree{"d/b": textFile(gitPoem + "eight\n")}, []string{"R a -> d/b [7,0 +1 seven]"}},
		"renamed and changed beyond recognition": {
			gitTree{"a": textFile(gitPoem)}, gitTree{"b": textFile("1\n2\n3\n4\nfive\n")}, []string{"D a", "A b"}},
		"a copy is a new file": {
			gitTree{"a": textFile(gitPoem)}, gitTree{"a": textFile(gitPoem + "x\n"), "b": textFile(gitPoem)}, []string{"M a [7,0 +1 seven]", "A b"}},
		"binaries": {
			gitTree{"changed": textFile(gitBlob), "gone": textFile(gitBlob + gitBlob), "text": textFile("x\n")},
			gitTree{"changed": textFile(gitBlob + "x"), "new": textFile("\x00"), "text": textFile("x\x00\n")},
			[]string{"M changed binary", "D gone binary", "A new binary", "M text binary"}},
		"an executable file": {
			gitTree{"a": textFile(gitPoem), "b": textFile(gitPoem + "b\n")}, gitTree{"a": execFile(gitPoem), "b": execFile(gitPoem + "B\n")},
			[]string{"M a 100644>100755", "M b 100644>100755 [8,1 +1 seven]"}},
		"a link with another target has no hunks": {
			gitTree{"a": linkFile("x")}, gitTree{"a": linkFile("y")}, []string{"M a"}},
		"nor has a renamed one": {
			gitTree{"a": linkFile("x")}, gitTree{"b": linkFile("x")}, []string{"R a -> b"}},
		"a file, a link and a module take each other's place": {
			gitTree{"a": textFile(gitPoem), "b": linkFile("x"), "c": moduleFile("1"), "d": textFile(gitBlob), "e": textFile("x\n")},
			gitTree{"a": linkFile("x"), "b": moduleFile("1"), "c": textFile(gitPoem), "d": linkFile("x"), "e": textFile("y\n")},
			[]string{"T a 100644>120000", "T b 120000>160000", "T c 160000>100644", "T d 100644>120000 binary", "M e [1,1 +1 ]"}},
		"a submodule": {
			gitTree{"a": moduleFile("1"), "z": textFile("x\n")}, gitTree{"a": moduleFile("2"), "b": moduleFile("3"), "z": textFile("y\n")},
			[]string{"M a", "A b", "M z [1,1 +1 ]"}},
		"a submodule that .gitmodules leaves out": {
			gitTree{".gitmodules": textFile("[submodule \"a\"]\n\tpath = a\n\turl = x\n\tignore = all\n"), "a": moduleFile("1")},
			gitTree{".gitmodules": textFile("[submodule \"a\"]\n\tpath = a\n\turl = x\n\tignore = all\n"), "a": moduleFile("2")},
			[]string{"M a"}},
		"a file becomes a folder": {
			gitTree{"a": textFile("x\n")}, gitTree{"a/b": textFile("completely\ndifferent\n")}, []string{"D a", "A a/b"}},
		"names": {
			gitTree{"with space": textFile("x\n"), `"quoted"`: textFile("x\n"), "tab\there": textFile("x\n"), "a\nb\ndiff --git a/x b/x": textFile("x\n"), "née": textFile("x\n"), `back\slash`: textFile("x\n"), "\xe9": textFile("x\n"), ":(exclude)*": textFile("x\n")},
			gitTree{"with space": textFile("y\n"), `"quoted"`: textFile("y\n"), "tab\there": textFile("y\n"), "a\nb\ndiff --git a/x b/x": textFile("y\n"), "née": textFile("y\n"), `back\slash`: textFile("y\n"), "\xe9": textFile("y\n"), ":(exclude)*": textFile("y\n")},
			[]string{`M "quoted" [1,1 +1 ]`, "M :(exclude)* [1,1 +1 ]", "M a\nb\ndiff --git a/x b/x [1,1 +1 ]", `M back\slash [1,1 +1 ]`,
				"M née [1,1 +1 ]", "M tab\there [1,1 +1 ]", "M with space [1,1 +1 ]", `M \351 [1,1 +1 ]`}},
		"a very long name": {
			gitTree{strings.Repeat(strings.Repeat("long", 24)+"/", 36) + "a": textFile("x\n"), "z": textFile("x\n")}, gitTree{strings.Repeat(strings.Repeat("long", 24)+"/", 36) + "a": textFile("y\n"), "z": textFile("y\n")},
			[]string{"M " + strings.Repeat(strings.Repeat("long", 24)+"/", 36) + "a [1,1 +1 ]", "M z [1,1 +1 ]"}},
		"content that looks like a patch": {
			gitTree{"a": textFile("-- a/a\n@@ -1 +1 @@\n\\ No newline at end of file\n"), "b": textFile("x\n")},
			gitTree{"a": textFile("++ b/a\ndiff --git a/b b/b\nBinary files a and b differ\n@@ -1 +1 @@ x\n\\ No newline"), "b": textFile("y\n")},
			[]string{"M a [1,3 +5 ]", "M b [1,1 +1 ]"}},
		"a line longer than any buffer": {
			gitTree{"a": textFile("x\n" + strings.Repeat("long ", 50_000) + "\ny\n")}, gitTree{"a": textFile("x\n" + strings.Repeat("long ", 60_000) + "\nz\n")},
			[]string{"M a [2,2 +2 x]"}},
		"a heading cut amidst a character": {
			gitTree{"a": textFile(strings.Repeat("é", 100) + "\nz" + strings.Repeat("é", 100) + "\n\n\nx\n")},
			gitTree{"a": textFile(strings.Repeat("é", 100) + "\nz" + strings.Repeat("é", 100) + "\n\n\ny\n")},
			[]string{"M a [5,1 +1 z" + strings.Repeat("é", 39) + "]"}},
		"a file with many lines, all of them changed": {
			gitTree{"a": textFile(strings.Repeat("x\n", 2000))}, gitTree{"a": textFile(strings.Repeat("y\n", 2000))}, []string{"M a [1,2000 +2000 ]"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, format := range []string{"sha1", "sha256"} {
				if format == "sha256" && hasModules(test.before, test.after) {
					continue // of 64 digits; git treats them alike
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

func hasModules(trees ...gitTree) bool {
	for _, tree := range trees {
		for _, f := range tree {
			if f.mode == "160000" {
				return true
			}
		}
	}
	return false
}

// The first commit has nothing before it.
func TestGitRecordOfAFirstCommit(t *testing.T) {
	useNoGitConfig(t)
	for _, format := range []string{"sha1", "sha256"} {
		g, shas := newGitRepo(t, []string{"--object-format=" + format}, gitTree{"a": textFile(gitPoem), "b/c": textFile(gitBlob), "l": linkFile("a")})
		r, err := g.read(t.Context(), commitQuery{rev: "main"})
		if want := []string{"A a", "A b/c binary", "A l"}; err != nil || !slices.Equal(outline(r.Changes), want) {
			t.Errorf("%s: %q (%v), want %q", format, outline(r.Changes), err, want)
		}
		if r.Base != "" || !slices.Equal(r.Ancestors, shas) {
			t.Errorf("%s: base %q, ancestors %q of %q", format, r.Base, r.Ancestors, shas)
		}
	}
}

// Whatever the user, the machine and the clone tell git, the record is the same.
func TestGitRecordIsTheSameForEverybody(t *testing.T) {
	useNoGitConfig(t)
	before := gitTree{"a.c": textFile(gitPoem), "née.c": textFile("int f()\n{\n\tx;\n}\n"), "old.c": textFile(gitPoem + "old\n"), "bin": textFile(gitBlob), "sub": moduleFile("1"),
		"blanks.c": textFile("\n\n\nx\n\n\n"), "crlf": textFile("x\r\ny\r\n")}
	after := gitTree{"a.c": textFile("zero\n" + gitPoem + "eight"), "née.c": textFile("int f()\n{\n\ty;\n}\n"), "new.c": textFile(gitPoem + "new\n"), "bin": textFile(gitBlob + "x"), "sub": moduleFile("2"),
		"blanks.c": textFile("\n\n\ny \n\n\n\n"), "crlf": textFile("x\r\nz\r\n"), "copy.c": textFile(gitPoem)}
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
	writeTestFile(t, order, "*.c\nbin\n")
	for _, setting := range []string{
		"diff.noprefix=true", "diff.mnemonicPrefix=true", "diff.srcPrefix=x/", "diff.algorithm=patience", "core.quotePath=false", "core.quotePath=true",
		"diff.renames=false", "diff.renames=copies", "diff.renameLimit=1", "diff.external=false", "color.ui=always", "color.diff=always", "diff.colorMoved=zebra",
		"diff.context=7", "diff.interHunkContext=10", "diff.orderFile=" + order, "core.autocrlf=true", "core.eol=crlf", "core.bigFileThreshold=1",
		"diff.indentHeuristic=true", "diff.suppressBlankEmpty=true", "diff.submodule=log", "diff.ignoreSubmodules=all", "diff.wsErrorHighlight=all",
		"diff.relative=true", "core.whitespace=cr-at-eol", "diff.default.xfuncname=nothing", "core.pager=false", "i18n.logOutputEncoding=latin1", "core.abbrev=4",
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
		filepath.Join(g.dir, ".gitattributes"), filepath.Join(g.dir, ".git", "info", "attributes"), filepath.Join(os.Getenv("HOME"), ".config", "git", "attributes"),
	} {
		t.Run("with attributes in "+filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			writeTestFile(t, path, attributes)
			defer os.Remove(path)
			for name, value := range map[string]string{"diff.c.xfuncname": "x", "diff.show.textconv": "cat", "diff.show.command": "false", "diff.c.algorithm": "minimal", "diff.c.wordRegex": "."} {
				mustGit(t, g, "", "config", name, value)
			}
			same(t)
		})
	}
}

func writeTestFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
