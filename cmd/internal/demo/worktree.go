package demo

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

const (
	// maxRead limits how many commits of the work tree are read for their names.
	maxRead = 400
	// maxListed limits how many of them are read for the files they change.
	maxListed = 60
	// maxFiles and maxFileSize limit what is read of the files.
	maxFiles    = 40
	maxOpened   = 200
	maxFileSize = 64 << 10
	// maxSubject is the maximum length of a commit's message, in characters.
	maxSubject = 100
	// readTimeout limits reading the work tree. The sample is used if it takes longer.
	readTimeout = 3 * time.Second
)

// findCast returns names from the git work tree in the current folder. What that does not
// have comes from the sample.
func findCast(ctx context.Context) (cast, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return cast{}, fmt.Errorf("git not found in PATH: install git to run the demo")
	}
	sample := sampleCast()
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	top := gitrepo.Repo{Dir: "."}.Root(ctx)
	if top == "" {
		return sample, nil // not in a work tree
	}

	tree := workTree{gitrepo.Repo{Dir: top}}
	c := cast{folder: filepath.Base(tree.Dir)}
	c.product = repoName(c.folder)
	var err error
	if c.people, c.tasks, err = tree.people(ctx); err != nil || len(c.tasks) == 0 {
		return sample, nil //nolint:nilerror // it has no commits
	}
	c.test, c.lint = tree.tools()
	c.files, err = tree.files(ctx)
	if _, enough := c.files.spots(); err != nil || !enough {
		c.files = sample.files
	}
	if len(c.tasks) < minTasks {
		c.tasks = append(sample.tasks[:minTasks-len(c.tasks)], c.tasks...)
	}
	return c, nil
}

// A workTree is the git work tree that the demo takes names from. It is only read.
type workTree struct{ gitrepo.Repo }

// people returns those who wrote the latest commits, the most active first, filled up with
// people of the sample; and what they did, oldest first, with what is on branches last.
func (t workTree) people(ctx context.Context) ([]ledger.Author, []task, error) {
	log, err := t.Read(ctx, "log", fmt.Sprintf("--max-count=%d", maxRead), "--no-merges", "--no-show-signature",
		"--no-color", "--encoding=UTF-8", "--format=%x01%an%x00%ae%x00%s", "HEAD")
	if err != nil {
		return nil, nil, err
	}

	count := make(map[ledger.Author]int)
	var authors []ledger.Author
	var tasks []task
	seen := make(map[string]bool)
	for record := range strings.SplitSeq(log, "\x01") {
		fields := strings.Split(strings.TrimSuffix(record, "\n"), "\x00")
		if len(fields) != 3 {
			continue
		}
		a := ledger.Author{Name: fields[0], Email: fields[1]}
		if count[a]++; count[a] == 1 {
			authors = append(authors, a)
		}
		subject := terminal.Clip(terminal.Clean(fields[2]), maxSubject)
		if isSubject(subject) && !seen[subject] && len(tasks) < minTasks {
			seen[subject] = true
			tasks = append(tasks, task{subject: subject, author: a.Name})
		}
	}

	slices.SortStableFunc(authors, func(a, b ledger.Author) int { return count[b] - count[a] })
	list := peopleList{names: make(map[string]bool)}
	for _, a := range append(authors, samplePeople()...) {
		list.add(a)
	}
	slices.Reverse(tasks)
	return list.people, tasks, nil
}

// isSubject reports whether a text can be the message of a commit. It may not name authors
// of its own.
func isSubject(s string) bool {
	return utf8.ValidString(s) && branchName(s) != "" && !strings.HasPrefix(strings.ToLower(s), "co-authored-by")
}

// tools returns the predicates of tests and linter that fit the language.
func (t workTree) tools() (test, lint string) {
	for _, tool := range []struct{ file, test, lint string }{
		{"go.mod", "test:go", "lint:golangci"},
		{"Cargo.toml", "test:cargo", "lint:clippy"},
		{"pyproject.toml", "test:pytest", "lint:ruff"},
		{"package.json", "test:node", "lint:eslint"},
		{"pom.xml", "test:junit", "lint:checkstyle"},
	} {
		if _, err := os.Stat(filepath.Join(t.Dir, tool.file)); err == nil {
			return tool.test, tool.lint
		}
	}
	return "test:unit", "lint:style"
}

// files returns text files that the latest commits have changed.
func (t workTree) files(ctx context.Context) (files, error) {
	out, err := t.Read(ctx, "log", "-z", fmt.Sprintf("--max-count=%d", maxListed), "--no-merges", "--no-show-signature",
		"--name-only", "--no-renames", "--format=", "HEAD")
	if err != nil {
		return nil, err
	}
	folder, err := os.OpenRoot(t.Dir)
	if err != nil {
		return nil, err
	}
	defer folder.Close()

	list := make(files)
	seen := make(map[string]bool)
	for path := range strings.SplitSeq(out, "\x00") {
		path = strings.TrimPrefix(path, "\n")
		if seen[path] || !isPlainPath(path) {
			continue
		}
		seen[path] = true
		if text, ok := readText(folder, path); ok {
			list[path] = text
		}
		if len(list) == maxFiles || len(seen) == maxOpened {
			break
		}
	}
	return list, nil
}

// readText returns the content of a file, and reports whether it can be changed by lines.
func readText(folder *os.Root, path string) (text string, ok bool) {
	info, err := folder.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxFileSize {
		return "", false
	}
	b, err := folder.ReadFile(path)
	text = string(b)
	return text, err == nil && utf8.ValidString(text) && !strings.ContainsAny(text, "\x00\r") &&
		strings.HasSuffix(text, "\n")
}

// isPlainPath reports whether a path is short and needs no quotes.
func isPlainPath(path string) bool {
	return path != "" && len(path) <= 80 && !strings.ContainsFunc(path, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"\`, r)
	})
}
