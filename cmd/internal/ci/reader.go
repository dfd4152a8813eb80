package ci

import (
	"net/url"
	"strings"
	"unicode"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/forge"
)

// The longest values that are read from the environment, in bytes.
const (
	maxURL    = 2000
	maxSlug   = 300
	maxNumber = 18
)

// A reader reads variables into a job and checks them.
type reader struct {
	get func(string) string
	job Job
}

func (r *reader) problem(problem, fix string) {
	r.job.Problems = append(r.job.Problems, Problem{problem, fix})
}

// invalid reports a value that was dropped. It does not repeat it, since it may contain
// anything.
func (r *reader) invalid(name, what, flag string) {
	r.problem(name+" is not "+what, "pass "+flag)
}

// commit sets the commit of the job from the first variable with a value.
func (r *reader) commit(names ...string) {
	for _, name := range names {
		if value := r.get(name); value != "" {
			r.setCommit(name, value)
			r.job.CommitIn = "$" + name
			return
		}
	}
}

// setCommit sets the commit of the job. Some providers report an abbreviated sha, or HEAD
// before they have resolved it.
func (r *reader) setCommit(name, value string) {
	switch {
	case ledger.IsCommit(value):
		r.job.Commit = value
	case value == "HEAD":
	case ledger.IsCommitPrefix(value):
		r.job.CommitRef = value
	default:
		r.invalid(name, "a commit", "--commit")
	}
}

// setEventCommit sets the commit of the job from a member of the event, such as github.event.sha.
func (r *reader) setEventCommit(member, value string) {
	r.setCommit(member, value)
	r.job.CommitIn = "${{ " + member + " }}"
}

// unknownHead is why the commit of a pull request is unknown.
const unknownHead = "the head commit of the pull request is unknown"

// needCommit sets why the commit of the job is unknown, unless it is known.
func (r *reader) needCommit(why string) {
	if r.job.Commit == "" && r.job.CommitRef == "" {
		r.job.NoCommit = why
	}
}

// object returns the value if it is a full sha.
func object(value string) string {
	if !ledger.IsCommit(value) || strings.Trim(value, "0") == "" {
		return ""
	}
	return value
}

// branch returns the name of a branch, without its ref prefix.
func (r *reader) branch(name, value, flag string) string {
	value = strings.TrimPrefix(value, "refs/heads/")
	if (ledger.Registration{Branch: value}).Check() != nil || hidden(value) {
		r.invalid(name, "the name of a branch", flag)
		return ""
	}
	return value
}

func (r *reader) setBranch(name string) { r.job.Branch = r.branch(name, r.get(name), "--branch") }
func (r *reader) setTarget(name string) { r.job.Target = r.branch(name, r.get(name), "--target") }

// setTag sets the tag, which has the form of a branch.
func (r *reader) setTag(value string) {
	value = strings.TrimPrefix(value, "refs/tags/")
	if (ledger.Registration{Branch: value}).Check() == nil && !hidden(value) {
		r.job.Tag = value
	}
}

// setPullRequest sets the number of the pull request.
func (r *reader) setPullRequest(value string) {
	isDigit := func(c rune) bool { return c >= '0' && c <= '9' }
	if len(value) <= maxNumber && strings.TrimFunc(value, isDigit) == "" {
		r.job.PullRequest = value
	}
}

// queuePrefix starts the branches of GitHub's merge queues.
const queuePrefix = "gh-readonly-queue/"

// leaveQueue removes the branch of a commit in a merge queue, which exists only in the queue. Its
// name, such as gh-readonly-queue/main/pr-42-SHA, says what the target and its tip are.
func (r *reader) leaveQueue() {
	name, isQueue := strings.CutPrefix(r.job.Branch, queuePrefix)
	if target, entry, ok := cutLast(name, "/pr-"); ok && isQueue && r.job.Target == "" {
		_, tip, _ := cutLast(entry, "-")
		r.job.Target, r.job.Base = target, object(tip)
	}
	r.job.Event, r.job.Branch = MergeQueue, ""
}

// setFork marks the pull request as one from a fork with the given slug or URL, which may
// be unknown, and renames its branch.
func (r *reader) setFork(slug string) {
	r.job.Fork = true
	owner, _, ok := strings.Cut(slug, "/")
	if !ok {
		owner = "unknown"
	}
	if r.job.Branch != "" {
		r.job.Branch = r.branch("the branch of the fork", "fork/"+owner+"/"+r.job.Branch, "--branch")
	}
}

// readFork marks a pull request as one from a fork if its source is another repository than its own,
// the target. Their addresses may have different forms. A source that cannot be parsed is a fork.
func (r *reader) readFork(own, source string) {
	if source == "" || source == own {
		return
	}
	if page := forge.OfRemote(source); page == "" || page != forge.OfRemote(own) {
		u, _ := url.Parse(page) // OfRemote has parsed it
		r.setFork(strings.Trim(u.Path, "/"))
	}
}

// pullRef returns the number and the kind, head or merge, of a ref such as
// refs/pull/42/merge.
func pullRef(ref string) (number, kind string, ok bool) {
	number, ok = strings.CutPrefix(ref, "refs/pull/")
	number, kind, _ = strings.Cut(number, "/")
	return number, kind, ok
}

// setRepo sets the repository from the address of its pages or of its clones.
func (r *reader) setRepo(address string) {
	if r.job.RepoURL = forge.OfRemote(address); r.job.RepoURL == "" {
		return
	}
	if u, err := url.Parse(r.job.RepoURL); err == nil {
		r.setSlug(strings.Trim(u.Path, "/"))
	}
}

func (r *reader) setSlug(slug string) {
	if len(slug) <= maxSlug && !hidden(slug) && !strings.ContainsAny(slug, " \\") {
		r.job.Slug = slug
	}
}

func (r *reader) setRun(address string) { r.job.RunURL = pageURL(address) }

// hidden reports whether a terminal or a page would not show all of the text as it is.
func hidden(text string) bool {
	return strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsGraphic(c) || c == unicode.ReplacementChar })
}

// pageURL returns an http or https URL without its password. It is empty for other text.
func pageURL(address string) string {
	if len(address) > maxURL || hidden(address) || strings.Contains(address, " ") {
		return ""
	}
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.User = nil
	return forge.Web(u.String())
}

// cutLast is like strings.Cut with the last separator. Without one, all text is after it.
func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return "", s, false
}
