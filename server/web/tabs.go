package web

import (
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/page"
)

// A tab is an entry of a navigation bar.
type tab struct {
	Label, Path string
	Current     bool
}

// A target is the page that a tab links to.
type target struct {
	label   string
	pattern string
	scope   ledger.Scope // required to see the tab
}

func orgTabs(v *page.Visit) []tab {
	if v.Org == "" {
		return nil
	}
	return tabs(v,
		target{"Repos", page.OrgPattern, ledger.Read},
		target{"Attention", page.AttentionPattern, ledger.Read},
		target{"Environments", page.EnvironmentsPattern, ledger.Read},
		target{"Activity", page.ActivityPattern, ledger.Read},
		target{"Insights", page.InsightsPattern, ledger.Read},
		target{"Artifacts", page.ArtifactsPattern, ledger.Read},
		target{"Log", page.LogPattern, ledger.Read},
		target{"Settings", page.SettingsPattern, ledger.Read},
	)
}

func repoTabs(v *page.Visit) []tab {
	if v.Repo == "" {
		return nil
	}
	return tabs(v,
		target{"Commits", page.RepoPattern, ledger.Read},
		target{"Attestations", page.AttestationsPattern, ledger.Read},
		target{"Policy", page.PolicyPattern, ledger.Read},
		target{"Radar", page.RadarPattern, ledger.Read},
		target{"Webhooks", page.WebhooksPattern, ledger.Maintain},
	)
}

func settingsTabs(v *page.Visit) []tab {
	if v.Org == "" || !strings.HasPrefix(v.Request.URL.Path+"/", v.PathOf(page.SettingsPattern)+"/") {
		return nil
	}
	targets := []target{
		{"Tokens", page.TokensPattern, ledger.Admin},
		{"Members", page.MembersPattern, ledger.Admin},
		{"Identities", page.IdentitiesPattern, ledger.Read},
		{"Sign-ins", page.SignInsPattern, ledger.Read},
	}
	if v.RPID != "" {
		targets = append(targets, target{"Passkeys", page.PasskeysPattern, ledger.Read})
	}
	return tabs(v, append(targets, target{"Audit", page.AuditPattern, ledger.Admin})...)
}

// tabs returns the tabs that the visitor may see. The current tab is the one
// whose path is the longest prefix of the page's.
func tabs(v *page.Visit, targets ...target) []tab {
	var tabs []tab
	current := -1
	for _, target := range targets {
		if !v.May(target.scope) {
			continue
		}
		t := tab{Label: target.label, Path: v.PathOf(target.pattern)}
		if strings.HasPrefix(v.Request.URL.Path+"/", t.Path+"/") && (current < 0 || len(t.Path) > len(tabs[current].Path)) {
			current = len(tabs)
		}
		tabs = append(tabs, t)
	}
	if current >= 0 && v.Route.Pattern != page.SearchPattern { // which no tab leads to
		tabs[current].Current = true
	}
	return tabs
}
