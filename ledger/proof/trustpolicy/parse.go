package trustpolicy

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// An Error says what is wrong on which line of a policy.
type Error struct {
	Line    int // from 1; 0 for the file as a whole
	Problem string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Problem
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Problem)
}

// Parse parses a policy. The error is an *Error.
func Parse(text []byte) (*Policy, error) {
	lines, err := Lines(text)
	if err != nil {
		return nil, err
	}

	p := newParser()
	for number, line := range lines {
		if len(line) == 0 {
			continue
		}
		p.line = number + 1
		if err := p.parse(line[0], line[1:]); err != nil {
			return nil, &Error{p.line, err.Error()}
		}
	}
	if p.quorum == 0 {
		return nil, &Error{Problem: "no quorum line: add one, such as quorum none"}
	}
	return &p.policy, nil
}

// Lines returns the items on each line of a file that has the syntax of a policy. Empty
// lines and comments have no items. The error is an *Error.
func Lines(text []byte) ([][]string, error) {
	if len(text) > MaxSize {
		return nil, &Error{Problem: fmt.Sprintf("the file has more than %d bytes", MaxSize)}
	}
	var lines [][]string
	for line := range bytes.Lines(text) {
		line, ended := bytes.CutSuffix(line, []byte("\n"))
		number := len(lines) + 1
		if !ended {
			return nil, &Error{number, "the last line has no newline at its end"}
		}
		if i := bytes.IndexFunc(line, isControl); i >= 0 {
			return nil, &Error{number, fmt.Sprintf("character 0x%02x is not allowed: of the control characters, only tab "+
				"and newline are", line[i])}
		}

		items := strings.FieldsFunc(string(line), func(r rune) bool { return r == ' ' || r == '\t' })
		if len(items) > 0 && strings.HasPrefix(items[0], "#") {
			items = nil
		}
		lines = append(lines, items)
	}
	return lines, nil
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// A parser has what is known from the lines before.
type parser struct {
	policy Policy
	line   int
	// named has the witnesses and groups, which share their names.
	named map[string]named
	// logs and witnesses have the lines of their keys.
	logs, witnesses map[string]int
	quorum          int // its line, or 0
}

func newParser() *parser {
	return &parser{named: make(map[string]named), logs: make(map[string]int), witnesses: make(map[string]int)}
}

// named says where a witness or group is defined, and in which line it became the member
// of a group, or 0.
type named struct{ line, member int }

// parse parses a line that is not empty.
func (p *parser) parse(keyword string, items []string) error {
	switch keyword {
	case "log":
		return p.log(items)
	case "witness":
		return p.witness(items)
	case "group":
		return p.group(items)
	case "quorum":
		return p.setQuorum(items)
	}
	return fmt.Errorf("unknown keyword %.100q: use log, witness, group or quorum", keyword)
}

func (p *parser) log(items []string) error {
	if len(items) < 1 || len(items) > 2 {
		return fmt.Errorf("a log has %d items: use log VKEY [URL]", len(items))
	}
	if len(p.policy.Logs) == MaxOf {
		return fmt.Errorf("more than %d logs", MaxOf)
	}
	key, err := ParseKey(items[0], LogTypes()...)
	if err != nil {
		return err
	}
	if line, ok := claim(p.logs, key, p.line); !ok {
		return fmt.Errorf("the log in line %d has the same public key, or the same name and ID", line)
	}
	p.policy.Logs = append(p.policy.Logs, Log{Key: key, URL: strings.Join(items[1:], "")})
	return nil
}

func (p *parser) witness(items []string) error {
	if len(items) < 2 || len(items) > 3 {
		return fmt.Errorf("a witness has %d items: use witness NAME VKEY [URL]", len(items))
	}
	if len(p.policy.Witnesses) == MaxOf {
		return fmt.Errorf("more than %d witnesses", MaxOf)
	}

	key, err := ParseKey(items[1], WitnessTypes()...)
	if err != nil {
		return err
	}
	if line, ok := claim(p.witnesses, key, p.line); !ok {
		return fmt.Errorf("the witness in line %d has the same public key, or the same name and ID", line)
	}
	if err := p.define(items[0]); err != nil {
		return err
	}
	p.policy.Witnesses = append(p.policy.Witnesses,
		Witness{Name: items[0], Key: key, URL: strings.Join(items[2:], "")})
	return nil
}

func (p *parser) group(items []string) error {
	if len(items) < 3 {
		return fmt.Errorf("a group has %d items: use group NAME all|any|NUMBER and the members", len(items))
	}
	if len(p.policy.Groups) == MaxOf {
		return fmt.Errorf("more than %d groups", MaxOf)
	}

	name, members := items[0], items[2:]
	threshold, err := parseThreshold(items[1], len(members))
	if err != nil {
		return err
	}
	// Before its own name is defined, so that it cannot be its own member.
	for _, member := range members {
		if err := p.join(member); err != nil {
			return err
		}
	}
	if err := p.define(name); err != nil {
		return err
	}
	p.policy.Groups = append(p.policy.Groups, Group{Name: name, Threshold: threshold, Members: members})
	return nil
}

// claim records the line of a key. It reports whether no key has the same public key, nor
// the same name and ID, which would let a signature count for both; else it returns the
// line of that key.
func claim(lines map[string]int, key Key, line int) (int, bool) {
	ids := []string{key.Public, fmt.Sprintf("%s+%08x", key.Name, key.ID)}
	for _, id := range ids {
		if other, ok := lines[id]; ok {
			return other, false
		}
	}
	for _, id := range ids {
		lines[id] = line
	}
	return 0, true
}

// parseThreshold parses the number of members that must have witnessed a checkpoint.
func parseThreshold(text string, members int) (int, error) {
	switch text {
	case "any":
		return 1, nil
	case "all":
		return members, nil
	}
	k, err := strconv.Atoi(text)
	if err != nil || strconv.Itoa(k) != text || k < 1 || k > members {
		return 0, fmt.Errorf("invalid threshold %.100q: use all, any or a number from 1 to %d", text, members)
	}
	return k, nil
}

// define defines the name of a witness or group.
func (p *parser) define(name string) error {
	if name == None {
		return fmt.Errorf("the name %s is reserved", None)
	}
	if n, ok := p.named[name]; ok {
		return fmt.Errorf("line %d already defines the name %.100q", n.line, name)
	}
	p.named[name] = named{line: p.line}
	return nil
}

// join makes a witness or group the member of a group.
func (p *parser) join(name string) error {
	if name == None {
		return fmt.Errorf("%s cannot be a member of a group", None)
	}
	n, ok := p.named[name]
	if !ok {
		return fmt.Errorf("no line above defines the member %.100q", name)
	}
	if n.member != 0 {
		return fmt.Errorf("%.100q is already a member of a group, in line %d", name, n.member)
	}
	n.member = p.line
	p.named[name] = n
	return nil
}

func (p *parser) setQuorum(items []string) error {
	if len(items) != 1 {
		return fmt.Errorf("a quorum has %d items: use quorum NAME", len(items))
	}
	if p.quorum != 0 {
		return fmt.Errorf("line %d already defines the quorum", p.quorum)
	}
	if _, ok := p.named[items[0]]; !ok && items[0] != None {
		return fmt.Errorf("no line above defines the quorum %.100q", items[0])
	}
	p.quorum, p.policy.Quorum = p.line, items[0]
	return nil
}

// LogTypes returns the types of keys with which a log may sign.
func LogTypes() []byte { return []byte{Ed25519, CosignedMLD} }

// WitnessTypes returns the types of keys with which a witness may cosign.
func WitnessTypes() []byte { return []byte{CosignedV1, CosignedMLD} }

// Format returns the policy as text, in an order that Parse accepts.
func (p *Policy) Format() []byte {
	var b bytes.Buffer
	write := func(items ...string) {
		if last := len(items) - 1; items[last] == "" { // no URL
			items = items[:last]
		}
		b.WriteString(strings.Join(items, " ") + "\n")
	}
	for _, l := range p.Logs {
		write("log", l.Key.String(), l.URL)
	}
	for _, w := range p.Witnesses {
		write("witness", w.Name, w.Key.String(), w.URL)
	}
	for _, g := range p.Groups {
		write(append([]string{"group", g.Name, strconv.Itoa(g.Threshold)}, g.Members...)...)
	}
	write("quorum", p.Quorum)
	return b.Bytes()
}
