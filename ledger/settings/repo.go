package settings

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// repos numbers the repos of an org, because they can be renamed.
type repos struct {
	list    []repo
	numbers map[string]int // by present name, in lower case
}

// A repo is a repo of an org.
type repo struct {
	name, former string // former is the name that it had before it was deleted
	deleted      string // when, as JSON
	webhooks     []string
}

// find returns the number of the repo that has a name now.
func (r *repos) find(name string) int {
	n, ok := r.numbers[strings.ToLower(name)]
	if !ok {
		n = len(r.list)
		r.list = append(r.list, repo{name: name})
		r.numbers[strings.ToLower(name)] = n
	}
	return n
}

// rename renames a repo, and returns its number. The values are those of the repo before and after. One that is
// restored is found by when it was deleted, because others may have had its name.
func (r *repos) rename(target string, before, after values) int {
	from, to := cmp.Or(before.text("name"), target), cmp.Or(after.text("name"), target)
	n := slices.IndexFunc(r.list, func(repo repo) bool {
		return repo.deleted != "" && repo.deleted == before["deleted_at"] && repo.former == from
	})
	if n < 0 {
		n = r.find(from)
	}

	repo := &r.list[n]
	delete(r.numbers, strings.ToLower(repo.name))
	repo.name, repo.former, repo.deleted = to, from, after["deleted_at"]
	r.numbers[strings.ToLower(to)] = n
	return n
}

// number replaces the names of repos in values by their numbers. If there were so many names that an event has
// only their digest, they are left out: repos can be renamed.
func (r *repos) number(v values) {
	var names, numbers []string
	_ = json.Unmarshal([]byte(v["repos"]), &names)
	for _, name := range names {
		numbers = append(numbers, number(r.find(name)))
	}
	v["repos"] = strings.Join(numbers, " ")
}

// names replaces the numbers of repos in a value by their present names.
func (r *repos) names(value string) string {
	var names []string
	for text := range strings.FieldsSeq(value) {
		n, _ := strconv.Atoi(text[1:])
		names = append(names, r.list[n].name)
	}
	return strings.Join(names, " ")
}

// number returns the number of a repo as a value.
func number(n int) string { return "#" + strconv.Itoa(n) }
