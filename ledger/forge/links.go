package forge

import (
	"net/url"
	"strconv"
	"strings"
)

// A layout says how a kind of forge forms the addresses of its pages, below that of the
// repo. In each, {sha}, {branch}, {target} and {path} stand for values escaped for a
// path, {branch=} and so on for the same escaped for a query, and {number}, {from}, {to}
// and {after} for numbers. The forge has no page whose address is empty.
type layout struct {
	commit string
	branch string
	file   string
	line   string // follows file
	lines  string // follows file
	pull   string
	// pulls lists the pull requests of a branch or, where the forge has no such list,
	// compares it with its target, which shows whether there is one.
	pulls string
}

// layoutOf returns the layout of a kind of forge.
func layoutOf(kind Kind, base string) layout {
	switch kind {
	case GitHub:
		return layout{
			commit: "/commit/{sha}", branch: "/tree/{branch}",
			file: "/blob/{sha}/{path}", line: "#L{from}", lines: "#L{from}-L{to}",
			pull: "/pull/{number}", pulls: "/pulls?q=is%3Apr+head%3A{branch=}",
		}

	case GitLab:
		return layout{
			commit: "/-/commit/{sha}", branch: "/-/tree/{branch}",
			file: "/-/blob/{sha}/{path}", line: "#L{from}", lines: "#L{from}-{to}",
			pull: "/-/merge_requests/{number}", pulls: "/-/merge_requests?scope=all&state=all&source_branch={branch=}",
		}

	case Gitea, Forgejo:
		return layout{
			commit: "/commit/{sha}", branch: "/src/branch/{branch}",
			file: "/src/commit/{sha}/{path}", line: "#L{from}", lines: "#L{from}-L{to}",
			pull: "/pulls/{number}", pulls: "/compare/{target}...{branch}",
		}

	case Bitbucket:
		if strings.Contains(base, "/repos/") && !strings.HasPrefix(base, "https://bitbucket.org/") { // Data Center
			return layout{
				commit: "/commits/{sha}", branch: "/browse?at=refs%2Fheads%2F{branch=}",
				file: "/browse/{path}?at={sha}", line: "#{from}", lines: "#{from}-{to}",
				pull:  "/pull-requests/{number}",
				pulls: "/compare/commits?sourceBranch=refs%2Fheads%2F{branch=}&targetBranch=refs%2Fheads%2F{target=}",
			}
		}
		return layout{
			commit: "/commits/{sha}", branch: "/branch/{branch}",
			file: "/src/{sha}/{path}", line: "#lines-{from}", lines: "#lines-{from}:{to}",
			pull: "/pull-requests/{number}", pulls: "/branch/{branch}",
		}

	case Azure:
		at := "?path=%2F{path=}&version=GC{sha}"
		columns := "&lineStartColumn=1&lineEndColumn=1"
		return layout{
			commit: "/commit/{sha}", branch: "?version=GB{branch=}",
			file: at, line: "&line={from}&lineEnd={after}" + columns, lines: "&line={from}&lineEnd={after}" + columns,
			pull: "/pullrequest/{number}", pulls: "/branchCompare?baseVersion=GB{target=}&targetVersion=GB{branch=}",
		}
	}
	return layout{}
}

// Commit returns the address of a commit.
func (s Site) Commit(sha string) string {
	return s.page(layoutOf(s.kind, s.base).commit, names{"sha": sha})
}

// Branch returns the address of a branch.
func (s Site) Branch(branch string) string {
	return s.page(layoutOf(s.kind, s.base).branch, names{"branch": branch})
}

// File returns the address of a file at a commit.
func (s Site) File(sha, path string) string { return s.Lines(sha, path, 0, 0) }

// Lines returns the address of a range of lines of a file at a commit. The first line is
// 1. If from is 0 it is that of the file, and if to is not more than from that of one line.
func (s Site) Lines(sha, path string, from, to int) string {
	l, given := layoutOf(s.kind, s.base), names{"sha": sha, "path": path}
	file := s.page(l.file, given)
	if file == "" || from <= 0 {
		return file
	}

	to = max(from, to)
	suffix := l.lines
	if to == from {
		suffix = l.line
	}
	numbers := strings.NewReplacer(
		"{from}", strconv.Itoa(from), "{to}", strconv.Itoa(to), "{after}", strconv.Itoa(to+1))
	return file + numbers.Replace(suffix)
}

// Pull returns the address of a pull request, which some forges call a merge request.
func (s Site) Pull(number int) string {
	if number <= 0 {
		return ""
	}
	return s.page(layoutOf(s.kind, s.base).pull, names{"number": strconv.Itoa(number)})
}

// Pulls returns an address that shows the pull requests of a branch into a target, whose
// number is not known.
func (s Site) Pulls(branch, target string) string {
	if branch == target {
		return ""
	}
	return s.page(layoutOf(s.kind, s.base).pulls, names{"branch": branch, "target": target})
}

// names are the values of a layout's placeholders.
type names map[string]string

// page fills in a layout. It returns an empty string if the layout is empty or needs a
// value that cannot be part of an address.
func (s Site) page(layout string, values names) string {
	var pairs []string
	for name, value := range values {
		inPath, needed := escape(value), "{"+name
		if inPath == "" && strings.Contains(layout, needed) {
			return ""
		}
		pairs = append(pairs, "{"+name+"}", inPath, "{"+name+"=}", url.QueryEscape(value))
	}

	if layout == "" {
		return ""
	}
	return s.base + strings.NewReplacer(pairs...).Replace(layout)
}
