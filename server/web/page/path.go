package page

import (
	"net/url"
	"strings"
)

// Patterns of paths that several packages use. They are below the base path.
const (
	OrgPattern            = "/orgs/{org}"
	EventsPattern         = OrgPattern + "/events"
	ActivityPattern       = OrgPattern + "/activity"
	AttentionPattern      = OrgPattern + "/attention"
	SettingsPattern       = OrgPattern + "/settings"
	OrgViolationsPattern  = OrgPattern + "/violations"
	EnvironmentsPattern   = OrgPattern + "/environments"
	ArtifactsPattern      = OrgPattern + "/artifacts"
	SearchPattern         = OrgPattern + "/search"
	InsightsPattern       = OrgPattern + "/insights"
	LogPattern            = OrgPattern + "/log"
	TokensPattern         = SettingsPattern + "/tokens"
	IdentitiesPattern     = SettingsPattern + "/identities"
	TrustedRootPattern    = SettingsPattern + "/trusted-root"
	MembersPattern        = SettingsPattern + "/members"
	MemberRulesPattern    = SettingsPattern + "/member-rules"
	SignInsPattern        = SettingsPattern + "/sign-ins"
	PasskeysPattern       = SettingsPattern + "/passkeys"
	AuditPattern          = SettingsPattern + "/audit"
	RepoPattern           = OrgPattern + "/repos/{repo}"
	CommitPattern         = RepoPattern + "/commits/{sha}"
	AttestationsPattern   = RepoPattern + "/attestations"
	AttestationPattern    = AttestationsPattern + "/{id}"
	PolicyPattern         = RepoPattern + "/policy"
	EditPolicyPattern     = PolicyPattern + "/edit"
	RepoViolationsPattern = RepoPattern + "/violations"
	RadarPattern          = RepoPattern + "/radar"
	WebhooksPattern       = RepoPattern + "/webhooks"
)

// PathTo returns the path with these segments, escaped. It is below the base path.
func PathTo(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}

// WithQuery returns a path with query parameters, if there are any.
func WithQuery(path string, query url.Values) string {
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}
