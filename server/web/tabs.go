package web

import (
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
)

// A tab is one entry of a navigation.
type tab struct {
	Label, Path string
	Current     bool
}

// A place is what a tab leads to.
type place struct {
	label   string
	pattern string
	scope   ledger.Scope // without which it is not shown
}

func (v *visit) orgTabs() []tab {
	if v.org == "" {
		return nil
	}
	return v.tabs(
		place{"Repos", orgPattern, ledger.Read},
		place{"Activity", activityPattern, ledger.Read},
		place{"Settings", settingsPattern, ledger.Read},
	)
}

func (v *visit) repoTabs() []tab {
	if v.repo == "" {
		return nil
	}
	return v.tabs(
		place{"Commits", repoPattern, ledger.Read},
		place{"Policy", policyPattern, ledger.Read},
		place{"Radar", radarPattern, ledger.Read},
		place{"Webhooks", webhooksPattern, ledger.Admin},
	)
}

func (v *visit) settingsTabs() []tab {
	if v.org == "" || !strings.HasPrefix(v.r.URL.Path+"/", v.pathOf(settingsPattern)+"/") {
		return nil
	}
	return v.tabs(
		place{"Tokens", tokensPattern, ledger.Admin},
		place{"Identities", identitiesPattern, ledger.Read},
	)
}

// tabs returns those of the places that there are for the visitor. Current is
// the one that leads furthest towards the page itself.
func (v *visit) tabs(places ...place) []tab {
	var tabs []tab
	current := -1
	for _, p := range places {
		if !v.may(p.scope) {
			continue
		}
		t := tab{Label: p.label, Path: v.pathOf(p.pattern)}
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
