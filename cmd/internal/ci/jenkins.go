package ci

import "strings"

// isJenkins reports whether Jenkins runs the job. It sets JENKINS_URL only if its address
// is configured.
func isJenkins(get func(string) string) bool {
	return get("JENKINS_URL") != "" || get("JENKINS_HOME") != "" && get("BUILD_NUMBER") != ""
}

// readJenkins reads the variables of Jenkins, its Git plugin and multibranch pipelines.
func readJenkins(r *reader) {
	r.setRepo(r.get("GIT_URL"))
	r.setRun(r.get("BUILD_URL"))
	if r.get("CHANGE_ID") != "" {
		r.readChange()
		return
	}
	for _, t := range jenkinsTriggers {
		if r.get(t.number) != "" {
			r.readTriggered(t)
			return
		}
	}

	r.commit("GIT_COMMIT")
	switch {
	case r.get("TAG_NAME") != "":
		r.setTag(r.get("TAG_NAME"))
	case r.get("BRANCH_NAME") != "":
		r.setBranch("BRANCH_NAME")
	default: // a pipeline of a single branch, such as origin/main
		r.job.Branch = r.branch("GIT_BRANCH", strings.TrimPrefix(r.get("GIT_BRANCH"), "origin/"), "--branch")
	}
}

// readChange reads the variables of a change request. GIT_COMMIT may be a merge that
// Jenkins made in the workspace. The head is what Jenkins has fetched as origin/PR-42,
// which BRANCH_NAME names.
func (r *reader) readChange() {
	r.setPullRequest(r.get("CHANGE_ID"))
	r.setBranch("CHANGE_BRANCH")
	r.setTarget("CHANGE_TARGET")
	if name := r.branch("BRANCH_NAME", r.get("BRANCH_NAME"), "--commit"); name != "" {
		r.job.CommitRef = "refs/remotes/origin/" + name
		r.job.CommitIn = "origin/$BRANCH_NAME"
	}
	r.needCommit(unknownHead)
	if fork := r.get("CHANGE_FORK"); fork != "" {
		if !strings.Contains(fork, "/") { // the owner alone, if the name is the same
			fork += "/"
		}
		r.setFork(fork)
	}
}

// A jenkinsTrigger names the variables that a plugin sets if a pull request or change triggered the build.
type jenkinsTrigger struct {
	number, commit, branch, target string
	source, own                    string // the repositories of the change and of its target
}

// jenkinsTriggers are those of the plugins ghprb, gitlab-plugin and gerrit-trigger. A change of
// Gerrit has no branch of its own.
var jenkinsTriggers = [...]jenkinsTrigger{
	{number: "ghprbPullId", commit: "ghprbActualCommit", branch: "ghprbSourceBranch", target: "ghprbTargetBranch",
		source: "ghprbAuthorRepoGitUrl", own: "GIT_URL"},
	{number: "gitlabMergeRequestIid", commit: "gitlabMergeRequestLastCommit", branch: "gitlabSourceBranch",
		target: "gitlabTargetBranch", source: "gitlabSourceRepoHttpUrl", own: "gitlabTargetRepoHttpUrl"},
	{number: "GERRIT_CHANGE_NUMBER", commit: "GERRIT_PATCHSET_REVISION", target: "GERRIT_BRANCH"},
}

// readTriggered reads the variables of a plugin. GIT_COMMIT may be a merge of the change, or the
// tip of a branch.
func (r *reader) readTriggered(t jenkinsTrigger) {
	r.setPullRequest(r.get(t.number))
	r.commit(t.commit)
	r.needCommit(unknownHead)
	r.setTarget(t.target)
	if t.branch != "" {
		r.setBranch(t.branch)
		r.readFork(r.get(t.own), r.get(t.source))
	}
}
