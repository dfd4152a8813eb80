package server

// The URLs of resources, relative to the server, as answers name them.

func orgURL(org string) string { return "/v1/orgs/" + org }

func repoURL(org, repo string) string { return orgURL(org) + "/repos/" + repo }

func commitURL(org, repo, sha string) string { return repoURL(org, repo) + "/commits/" + sha }

func attestationsURL(org, repo string) string { return repoURL(org, repo) + "/attestations" }

func webhookURL(org, repo, id string) string { return repoURL(org, repo) + "/webhooks/" + id }

func identityURL(org, id string) string { return orgURL(org) + "/identities/" + id }
