package demo

import (
	"path"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// A cast has the names that appear in the demo: of the product, its people, their commits
// and their files.
type cast struct {
	product string // valid as the name of a repo
	folder  string // the git work tree that the names are from; "" for the sample
	people  []ledger.Author
	tasks   []task
	files   files
	test    string // predicate of the tests, such as test:go
	lint    string // predicate of the linter
}

// A task is what a commit does.
type task struct {
	subject string
	author  string // the name of who did it; "" if anyone may
	branch  string // "" to derive it from the subject
}

const (
	// castSize is the number of people who write and review commits.
	castSize = 6
	// minTasks is the number of tasks that the story of the first repo needs.
	minTasks = 20
)

// A peopleList collects people who cannot be mistaken for each other: reviews of a commit by
// its author do not count, and policies compare all names and addresses of the two.
type peopleList struct {
	people []ledger.Author
	names  map[string]bool // folded names and addresses
}

// add adds a person, if the list has room, and nobody of this name or address.
func (l *peopleList) add(a ledger.Author) {
	a.Name, a.Email = terminal.OneLine(a.Name), strings.TrimSpace(a.Email)
	dn := identity.DN{CN: a.Name, OU: "dev", O: "demo"}
	if len(l.people) == castSize || strings.ContainsAny(a.Name+a.Email, "<>\n\x00") || dn.CheckVisible() != nil {
		return
	}
	if _, err := identity.ParseDN(dn.String()); err != nil || identity.CheckEmail(a.Email) != nil || a.Email == "" {
		return
	}

	names := identity.AuthorNames([]ledger.Author{a})
	if len(names) != 2 || slices.ContainsFunc(names, func(name string) bool { return l.names[name] }) {
		return
	}
	for _, name := range names {
		l.names[name] = true
	}
	l.people = append(l.people, a)
}

// branchName returns a branch for a commit with this subject. It drops a prefix such as
// "fix(api): ".
func branchName(subject string) string {
	if prefix, rest, ok := strings.Cut(subject, ": "); ok && len(prefix) <= 24 {
		subject = rest
	}
	subject = strings.ReplaceAll(strings.ToLower(subject), "'", "")
	words := strings.FieldsFunc(subject, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	name := ""
	for _, word := range words {
		if len(name)+len(word) > 28 {
			break
		}
		name += "-" + word
	}
	return strings.Trim(name, "-")
}

// repoName turns a folder's name into a valid repo name, with room for a suffix.
func repoName(folder string) string {
	name := strings.Map(func(r rune) rune {
		if r == '.' || r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, folder)
	if strings.Trim(name, ".-/") == "" {
		return "repo"
	}
	return name[:min(len(name), 90)]
}

// files are the text files of a repo, by path.
type files map[string]string

// paths returns the sorted paths.
func (f files) paths() []string {
	var list []string
	for p := range f {
		list = append(list, p)
	}
	slices.Sort(list)
	return list
}

// spots are the files that a story's branches collide in.
type spots struct {
	busy    string   // changed by several branches
	sibling string   // in the same folder
	doomed  string   // in another folder; one branch deletes it, another one edits it
	others  []string // at least minOthers, changed by one branch at a time
}

const (
	minOthers = 4
	// minLines is the minimum number of lines of a file with overlaps.
	minLines = 40
)

// spots chooses the files, and reports whether there are enough of them.
func (f files) spots() (s spots, ok bool) {
	paths := f.paths()
	long := func(p string) bool {
		return strings.Count(f[p], "\n") >= minLines && path.Dir(p) != "." && path.Ext(p) != ".md"
	}
	for _, p := range paths {
		if !long(p) || s.busy != "" && strings.Count(f[p], "\n") <= strings.Count(f[s.busy], "\n") {
			continue
		}
		inFolder := func(other string) bool { return other != p && path.Dir(other) == path.Dir(p) }
		if i := slices.IndexFunc(paths, inFolder); i >= 0 {
			s.busy, s.sibling = p, paths[i]
		}
	}

	inRoot := func(p string) int { return strings.Count("/"+path.Dir(p), "/.") }
	slices.SortStableFunc(paths, func(a, b string) int { return inRoot(a) - inRoot(b) })
	for _, p := range paths {
		switch {
		case path.Dir(p) == path.Dir(s.busy):
		case s.doomed == "" && long(p):
			s.doomed = p
		case path.Dir(p) != path.Dir(s.doomed):
			s.others = append(s.others, p)
		}
	}
	return s, s.busy != "" && s.doomed != "" && len(s.others) >= minOthers
}
