package ci

// readGitLab reads the predefined variables of GitLab CI.
func readGitLab(r *reader) {
	r.setRepo(r.get("CI_PROJECT_URL"))
	r.setRun(r.get("CI_JOB_URL"))
	switch {
	case r.get("CI_MERGE_REQUEST_IID") != "":
		r.readMergeRequest()
	case r.get("CI_EXTERNAL_PULL_REQUEST_IID") != "":
		r.readExternalPullRequest()
	case r.isAboutNoRef():
		r.needCommit("a pipeline of the source " + r.get("CI_PIPELINE_SOURCE") +
			" is about no commit, and CI_COMMIT_SHA is the tip of a branch")
	case r.get("CI_COMMIT_TAG") != "":
		r.setTag(r.get("CI_COMMIT_TAG"))
		r.commit("CI_COMMIT_SHA")
	default:
		r.setBranch("CI_COMMIT_BRANCH")
		r.commit("CI_COMMIT_SHA")
		if r.get("CI_PIPELINE_SOURCE") == "push" {
			r.job.Previous = object(r.get("CI_COMMIT_BEFORE_SHA"))
		}
	}
}

// isAboutNoRef reports whether the pipeline was started by something that concerns no branch or tag,
// such as a chat message or a pushed image. It then runs on the tip of a branch, usually the default one.
func (r *reader) isAboutNoRef() bool {
	switch r.get("CI_PIPELINE_SOURCE") {
	case "chat", "container_registry_push", "duo_workflow", "ondemand_dast_scan", "ondemand_dast_validation":
		return true
	}
	return false
}

// readMergeRequest takes the head of a merge request. CI_COMMIT_SHA is the head too, but
// an internal merge commit in merged results pipelines and merge trains; only these set the
// sha of the source branch.
func (r *reader) readMergeRequest() {
	r.setPullRequest(r.get("CI_MERGE_REQUEST_IID"))
	r.setBranch("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME")
	r.setTarget("CI_MERGE_REQUEST_TARGET_BRANCH_NAME")
	r.job.Base = object(r.get("CI_MERGE_REQUEST_DIFF_BASE_SHA"))
	switch r.get("CI_MERGE_REQUEST_EVENT_TYPE") {
	case "merged_result", "merge_train":
		r.commit("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA")
		r.needCommit(unknownHead)
	default:
		r.commit("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", "CI_COMMIT_SHA")
	}
	if source := r.get("CI_MERGE_REQUEST_SOURCE_PROJECT_PATH"); source != r.get("CI_MERGE_REQUEST_PROJECT_PATH") {
		r.setFork(source)
	}
}

// readExternalPullRequest takes the head of a pull request on GitHub.
func (r *reader) readExternalPullRequest() {
	r.setPullRequest(r.get("CI_EXTERNAL_PULL_REQUEST_IID"))
	r.setBranch("CI_EXTERNAL_PULL_REQUEST_SOURCE_BRANCH_NAME")
	r.setTarget("CI_EXTERNAL_PULL_REQUEST_TARGET_BRANCH_NAME")
	r.commit("CI_EXTERNAL_PULL_REQUEST_SOURCE_BRANCH_SHA", "CI_COMMIT_SHA")
	source := r.get("CI_EXTERNAL_PULL_REQUEST_SOURCE_REPOSITORY")
	if source != r.get("CI_EXTERNAL_PULL_REQUEST_TARGET_REPOSITORY") {
		r.setFork(source)
	}
}
