package delivery

import (
	"fmt"
	"strings"
)

// mainline is the key whose claims of clean merges count, and boss the one whose exceptions do.
const (
	mainline = "mainline"
	boss     = "boss"
)

// environments are those of each history.
func environments() []string { return []string{"prod", "stage", "eu"} }

// Rules are what a contract asks.
type rules struct {
	threshold int
	// authors reports whether authors may review.
	authors bool
	// proven reports whether nobody counts for a commit whose object is not known.
	proven bool
	// distinct reports whether reviewers must be others than testers.
	distinct        bool
	byTree, byMerge bool // how reviews carry
	testsByTree     bool
	// reviews and bills are a path that limits reviews, and that has a test of its own. They may be empty.
	reviews, bills string
	// signed reports whether signed records alone say what commits change. If not, registrations do.
	signed bool
}

// applies reports whether a requirement applies to what changes some paths.
func (r *rules) applies(requirement string, touches func(path string) bool) bool {
	switch requirement {
	case "review":
		return r.reviews == "" || touches(r.reviews)
	case "bills":
		return r.bills != "" && touches(r.bills)
	}
	return true
}

// tests are the requirements of ATTESTED. Each is about the predicate of its name.
func (r *rules) tests() []string { return []string{"go", "bills"} }

// contract returns the contract.
func (r *rules) contract() string {
	review := fmt.Sprintf(`"name":"review","state":"PROMOTABLE","predicate":"review:*","covers":"change","threshold":%d`,
		r.threshold)
	switch {
	case r.proven:
		review += `,"exclude_author":"proven"`
	case !r.authors:
		review += `,"exclude_author":true`
	}
	if r.distinct {
		review += `,"distinct_from":["ATTESTED"]`
	}
	if carry := r.carry(); carry != "" {
		review += `,"carry":[` + carry + `]`
	}
	if r.byMerge {
		review += `,"carry_signers":["cn=mainline"]`
	}
	if r.reviews != "" {
		review += `,"paths":["` + r.reviews + `"]`
	}

	test := `"state":"ATTESTED"`
	if r.testsByTree {
		test += `,"carry":["tree"]`
	}
	list := []string{test + `,"name":"go","predicate":"test:go"`, review}
	for _, env := range environments() {
		list = append(list, `"name":"`+env+`","state":"DEPLOYED","predicate":"deploy:`+env+`","delivery":true`)
	}
	if r.bills != "" {
		list = append(list, test+`,"name":"bills","predicate":"test:bills","paths":["`+r.bills+`"]`)
	}
	return `{"requirements":[{` + strings.Join(list, "},{") + `}],"radar":{"enabled":false},` +
		`"exceptions":{"signers":["cn=boss"],"max_duration":"1d"}}`
}

func (r *rules) carry() string {
	var carry []string
	if r.byTree {
		carry = append(carry, `"tree"`)
	}
	if r.byMerge {
		carry = append(carry, `"merge"`)
	}
	return strings.Join(carry, ",")
}
