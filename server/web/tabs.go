package web

import (
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
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

func (v *visit) orgTabs() []tab {
	if v.org == "" {
		return nil
	}
	return v.tabs(
		target{"Repos", orgPattern, ledger.Read},
		target{"Environments", environmentsPattern, ledger.Read},
		target{"Activity", activityPattern, ledger.Read},
		target{"Artifacts", artifactsPattern, ledger.Read},
		target{"Settings", settingsPattern, ledger.Read},
	)
}

func (v *visit) repoTabs() []tab {
	if v.repo == "" {
		return nil
	}
	return v.tabs(
		target{"Commits", repoPattern, ledger.Read},
		target{"Policy", policyPattern, ledger.Read},
		target{"Radar", radarPattern, ledger.Read},
		target{"Webhooks", webhooksPattern, ledger.Admin},
	)
}

func (v *visit) settingsTabs() []tab {
	if v.org == "" || !strings.HasPrefix(v.r.URL.Path+"/", v.pathOf(settingsPattern)+"/") {
		return nil
	}
	return v.tabs(
		target{"Tokens", tokensPattern, ledger.Admin},
		target{"Identities", identitiesPattern, ledger.Read},
	)
}

// tabs returns the tabs that the visitor may see. The current tab is the one
// whose path is the longest prefix of the page's.
func (v *visit) tabs(targets ...target) []tab {
	var tabs []tab
	current := -1
	for _, target := range targets {
		if !v.may(target.scope) {
			continue
		}
		t := tab{Label: target.label, Path: v.pathOf(target.pattern)}
		if strings.HasPrefix(v.r.URL.Path+"/", t.Path+"/") && (current < 0 || len(t.Path) > len(tabs[current].Path)) {
			current = len(tabs)
		}
		tabs = append(tabs, t)
	}
	if current >= 0 {
		tabs[current].Current = true
	}
	return tabs
}
