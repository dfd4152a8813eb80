package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

// phrases are replaced by plainer ones everywhere. CONTRIBUTING.md has the rules.
var phrases = []struct {
	phrase *regexp.Regexp
	better string
}{
	{regexp.MustCompile(`(?i)\b(tells|(is|are|was|were|be|been) told)\b`), "reports, shows, prints, notifies"},
	{regexp.MustCompile(`(?i)\b(anew|afresh)\b`), "again, or a verb with re-"},
	{regexp.MustCompile(`(?i)\bbeside\b`), "next to, in addition to, concurrently with"},
	{regexp.MustCompile(`(?i)\bmeanwhile\b`), "since then, in the meantime"},
	{regexp.MustCompile(`(?i)\bwho(ever|soever)\b`), "anyone who, the caller"},
	{regexp.MustCompile(`(?i)\bgo(es)? without\b`), "has no"},
	{regexp.MustCompile(`(?i)\bfor ever\b`), "no limit, forever"},
	{regexp.MustCompile(`(?i)\b(is|are) not acceptable\b`), "invalid"},
	{regexp.MustCompile(`(?i)\bcomes? of (it|them|this)\b`), "the result"},
	{regexp.MustCompile(`(?i)\b(is|are) none (to|of|where|such)\b`), "is not valid"},
	{regexp.MustCompile(`(?i)\bwhere (there|nothing|none|nobody) (is|are|was|were)\b`), "if there is"},
}

// proseFiles have comments, messages or documentation. Fixtures are left out.
var proseFiles = regexp.MustCompile(`\.(go|md|yaml|yml|html|css|js|sql|txtar|pml)$`)

func TestNoPhraseNeedsASecondReading(t *testing.T) {
	eachFile(t, proseFiles, func(name, text string) {
		for i, line := range strings.Split(text, "\n") {
			for _, p := range phrases {
				if found := p.phrase.FindString(line); found != "" {
					t.Errorf("%s:%d: %q: write %s", name, i+1, found, p.better)
				}
			}
		}
	})
}

// maxUnbroken is the number of lines that a function may have without a paragraph.
const maxUnbroken = 20

func TestLongFunctionsHaveParagraphs(t *testing.T) {
	eachFile(t, regexp.MustCompile(`\.go$`), func(name, text string) {
		files := token.NewFileSet()
		file := must.Get(parser.ParseFile(files, name, text, parser.SkipObjectResolution))(t)

		lines := strings.Split(text, "\n")
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			first, last := files.Position(f.Body.Lbrace).Line, files.Position(f.Body.Rbrace).Line
			n := last - first - 1 - linesOfData(files, f.Body)
			if n > maxUnbroken && !slices.ContainsFunc(lines[first:last], blank) {
				t.Errorf("%s: %s has %d lines without a blank one: make paragraphs", name, f.Name, n)
			}
		}
	})
}

// linesOfData returns the number of lines that composite literals add to a body.
func linesOfData(files *token.FileSet, body *ast.BlockStmt) (n int) {
	ast.Inspect(body, func(node ast.Node) bool {
		data, ok := node.(*ast.CompositeLit)
		if ok {
			n += files.Position(data.End()).Line - files.Position(data.Pos()).Line
		}
		return !ok
	})
	return n
}

func blank(line string) bool { return strings.TrimSpace(line) == "" }

var (
	links    = regexp.MustCompile(`\]\(([^)\s]*)\)`)
	headings = regexp.MustCompile(`(?m)^#+ (.*)$|<a id="([^"]*)">`)
)

// TestLinksBetweenDocsWork checks that the files and headings exist that the docs
// link to.
func TestLinksBetweenDocsWork(t *testing.T) {
	eachFile(t, regexp.MustCompile(`\.md$`), func(name, text string) {
		for _, link := range links.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(link[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := name
			if target != "" {
				file = filepath.Join(filepath.Dir(name), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, link[1])
				continue
			}
			if anchor != "" && !slices.Contains(anchors(t, file), anchor) {
				t.Errorf("%s links to %s, but %s has no such heading", name, link[1], file)
			}
		}
	})
}

// anchors lists the anchors that GitHub gives the headings of a Markdown file, and
// those in its HTML.
func anchors(t *testing.T, file string) []string {
	t.Helper()
	text := must.Read(t, file)

	punctuation := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	var all []string
	for _, heading := range headings.FindAllStringSubmatch(string(text), -1) {
		slug := strings.ToLower(punctuation.ReplaceAllString(heading[1], ""))
		all = append(all, strings.ReplaceAll(slug, " ", "-"), heading[2])
	}
	return all
}

// eachFile calls check with each file of the repository whose path matches,
// fixtures and hidden folders excepted.
func eachFile(t *testing.T, match *regexp.Regexp, check func(name, text string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (d.Name()[0] == '.' || d.Name() == "node_modules" || d.Name() == "dist"):
			return fs.SkipDir
		case d.IsDir() || !match.MatchString(name) || name == "prose_test.go":
			return nil
		case strings.Contains(name, "testdata") && !strings.HasSuffix(name, ".txtar"):
			return nil
		}
		text, err := os.ReadFile(name)
		check(name, string(text))
		return err
	})
	must.OK(t, err)
}
