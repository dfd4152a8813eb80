"""Lists with git alone which evidence may carry to which commits, by the rules of docs/policy.md.

usage: python3 may_carry.py OBJECTS < facts

OBJECTS is the objects folder of a repository. Facts are lines, in the order in which the ledger learns of them:

    person NAME EMAIL
    test NAME COMMIT pass|fail
    review NAME COMMIT pass|fail BASE   (- for none)
    mainline TIP                        (its first parents may be the parent of a claim)
    merge KIND COMMIT SOURCE PARENT     (prints what is wrong with this claim, or "clean")
    ask COMMIT                          (prints how its tests and reviews are met, and why not)
    ship COMMIT                         (prints why its change has no review, or "covered")
"""
import functools
import os
import subprocess
import sys
import tempfile

MAX_REBASED = 200
OPTIONS = ["-c", "merge.renames=true", "-c", "merge.renameLimit=7000", "-c", "merge.directoryRenames=conflict",
           "-c", "merge.renormalize=false"]


def git(*args):
    """Runs git in an empty repository that borrows the objects, so that no configuration or attribute counts."""
    done = subprocess.run(["git", "--git-dir", repo, *OPTIONS, *args], capture_output=True, text=True, errors="replace")
    if done.returncode > 1:
        sys.exit(f"git {args}: {done.stderr}")
    return done.returncode, done.stdout.strip()


@functools.cache
def tree(commit):
    return git("rev-parse", commit + "^{tree}")[1]


@functools.cache
def is_ancestor(a, b):
    return git("merge-base", "--is-ancestor", a, b)[0] == 0


@functools.cache
def authors(commits, names):
    """The e-mail addresses of those who wrote commits, which git log lists with these names in its format."""
    args = ["log", f"--format={names}%n%(trailers:key=Co-authored-by)", *commits.split()]
    return git(*args)[1].lower()


WROTE = "%ae%n%ce"


@functools.cache
def flaw(kind, commit, source, parent):
    """Why a commit is not what a claim says, or an empty string."""
    parents = git("log", "-1", "--format=%P", commit)[1].split()
    if kind == "squash" and parents != [parent]:
        return "not this parent"
    if kind == "merge" and sorted(parents) != sorted([source, parent]):
        return "not these parents"
    if kind == "update" and not (len(parents) == 2 and parent in parents
                                 and all(is_ancestor(source, p) for p in parents if p != parent)):
        return "not these parents"
    if kind == "rebase":
        before = git("rev-list", "--first-parent", "--skip=1", f"--max-count={MAX_REBASED}", commit)[1].split()
        if parent not in before:
            return "not put on the parent"

    bases = git("merge-base", "--all", parent, source)[1].split()
    if not bases:
        return "no common ancestor"
    if source in bases:
        return "nothing to merge"
    if kind == "rebase" and len(bases) > 1:
        return "a rebase with several merge bases"
    status, merged = git("merge-tree", "--write-tree", "--no-messages", parent, source)
    if status:
        return "a conflict"
    return "" if merged == tree(commit) else "not git's merge"


def is_below(base, commit):
    """Whether all parents of a commit contain the base of a review."""
    parents = git("rev-parse", commit + "^@")[1].split()
    return base != "-" and bool(parents) and all(is_ancestor(base, parent) for parent in parents)


class Ledger:
    def __init__(self):
        self.emails, self.mainline = {}, set()
        self.evidence = []  # (what, person, commit, passed, base), oldest first
        self.by_tree, self.by_commit, self.claims = {}, {}, {}
        self.answers = {}  # until the next fact

    def add(self, what, person, commit, result, base="-"):
        number = len(self.evidence)
        self.evidence.append((what, person, commit, result == "pass", base))
        self.by_tree.setdefault((what, tree(commit)), []).append(number)
        self.by_commit.setdefault((what, commit), []).append(number)

    def claim(self, kind, commit, source, parent):
        wrong = flaw(kind, commit, source, parent)
        if not wrong and parent not in self.mainline:
            wrong = "not on the mainline"
        claims = self.claims.setdefault(commit, [])
        if (kind, source, parent, wrong) not in claims:
            claims.append((kind, source, parent, wrong))
        return wrong or "clean"

    def met(self, what, commit):
        """How a requirement is met (own, tree, claim or no), and why not."""
        if (what, commit) not in self.answers:
            self.answers[what, commit] = self.find(what, commit)
        return self.answers[what, commit]

    def uncovered(self, commit):
        """Why the change of a commit that is shipped has no review. The mainline is asked for itself."""
        if any(kind in ("merge", "update") and not wrong for kind, _, _, wrong in self.claims.get(commit, [])):
            return ""
        return self.find("review", commit, False)[1]

    def find(self, what, commit, asks_mainline=True):
        why = ["no evidence"]  # the last one is the most specific
        ways = {}
        for n in self.by_tree.get((what, tree(commit)), []):
            _, _, _, passed, base = self.evidence[n]
            if what == "review" and passed and not is_below(base, commit):
                why.append("the base is not below the commit")
            else:
                ways[n] = ("tree", "")
        ways |= {n: ("own", "") for n in self.by_commit.get((what, commit), [])}
        for _, source, parent, wrong in self.claims.get(commit, []):
            if wrong:
                why.append(wrong)
                continue
            if asks_mainline and self.met(what, parent)[0] == "no":
                why.append("the parent lacks it")
                continue
            if (what, source) not in self.by_commit:
                why.insert(1, "the source has none of its own")
            for n in self.by_commit.get((what, source), []):
                _, _, _, passed, base = self.evidence[n]
                if what == "review" and passed and base == "-":
                    why.append("a review without a base")
                elif what == "review" and passed and not is_ancestor(base, parent):
                    why.append("the base is not on the mainline")
                else:
                    ways.setdefault(n, ("claim", source))

        latest = {self.evidence[n][1]: n for n in sorted(ways)}
        for person, n in latest.items():
            if not self.evidence[n][3]:
                return "no", "it failed"
            if what == "review" and self.wrote(person, commit, n, ways[n]):
                why.append("the reviewer is an author")
                continue
            return ways[n][0], ""
        return "no", why[-1]

    def wrote(self, person, commit, n, way):
        """Whether a reviewer is an author of what the review speaks for."""
        email = self.emails.get(person)
        if not email:
            return False
        _, _, about, _, base = self.evidence[n]
        who = authors(f"-1 {about}", WROTE)
        if way[0] == "claim":
            who += authors(f"-1 {commit}", "%ae")
        else:
            who += authors(f"-1 {commit}", WROTE)
        if base != "-" and about != commit:
            who += authors(f"{base}..{about}", WROTE)
        return email in who

    def answer(self, commit):
        tests, why_tests = self.met("test", commit)
        reviews, why_reviews = self.met("review", commit)
        why = "; ".join(f"{what}: {why}" for what, why in (("tests", why_tests), ("reviews", why_reviews)) if why)
        return f"{tests} {reviews} {why or '-'}"


def main():
    ledger = Ledger()
    for line in sys.stdin:
        verb, *words = line.split()
        if verb == "ask":
            print(ledger.answer(*words), flush=True)
            continue
        if verb == "ship":
            print(ledger.uncovered(*words) or "covered", flush=True)
            continue
        ledger.answers = {}
        if verb == "person":
            ledger.emails[words[0]] = words[1].lower()
        elif verb == "mainline":
            ledger.mainline.update(git("rev-list", "--first-parent", words[0])[1].split())
        elif verb == "merge":
            print(ledger.claim(*words), flush=True)
        else:
            ledger.add(verb, *words)


with tempfile.TemporaryDirectory() as repo:
    sys.setrecursionlimit(10_000)
    git("init", "--quiet", "--bare", repo)
    with open(os.path.join(repo, "objects", "info", "alternates"), "w") as file:
        file.write(sys.argv[1] + "\n")
    main()
