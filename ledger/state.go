package ledger

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// A State is how far a commit has come. States are ordered from lowest to highest.
type State uint8

// The five states.
const (
	Draft      State = iota // registered, no attestations
	Validating              // at least one attestation
	Attested                // the requirements of ATTESTED are met
	Promotable              // the requirements of PROMOTABLE are met too
	Deployed                // the requirements of DEPLOYED are met too, by evidence recorded while PROMOTABLE
)

// States lists all states from the lowest to the highest.
func States() []State { return []State{Draft, Validating, Attested, Promotable, Deployed} }

var stateNames = [...]string{"DRAFT", "VALIDATING", "ATTESTED", "PROMOTABLE", "DEPLOYED"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// ParseState parses the name of a state.
func ParseState(name string) (State, error) {
	for i, n := range stateNames {
		if n == name {
			return State(i), nil
		}
	}
	return 0, fmt.Errorf("%q is not a state (use DRAFT, VALIDATING, ATTESTED, PROMOTABLE or DEPLOYED)", text.Clip(name))
}

// AppendText implements encoding.TextAppender.
func (s State) AppendText(b []byte) ([]byte, error) { return append(b, s.String()...), nil }

// MarshalText implements encoding.TextMarshaler.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *State) UnmarshalText(b []byte) error { return text.Into(s, b, ParseState) }

// A Cause is the cause of a transition.
type Cause struct {
	Type CauseType `json:"type"`
	// ID identifies the attestation, policy version, commit, event or identity. For an
	// expiry, it is the attestation that expired; for an upgrade, the version of the rules;
	// for an exception or for carried evidence, its attestation.
	ID string `json:"id"`
}

// A CauseType is the type of a Cause.
type CauseType string

// The cause types.
const (
	CauseAttestation CauseType = "attestation" // an attestation was recorded
	CausePolicy      CauseType = "policy"      // the repo's contract changed
	CauseExpiry      CauseType = "expiry"      // evidence reached its max_age
	CauseRadar       CauseType = "radar"       // an overlap opened or closed
	CauseCommit      CauseType = "commit"      // a registration changed which requirements apply
	CauseIdentity    CauseType = "identity"    // two people turned out to be one, or an identity is distrusted
	CauseUpgrade     CauseType = "upgrade"     // a new release reads statements differently
	CauseException   CauseType = "exception"   // an exception was granted, or ended
	CauseCarry       CauseType = "carry"       // evidence of another commit, which carries, changed
)

// Reached reports whether a commit with a state and a standing has reached the state s: DEPLOYED
// is a state that it has had since, all others are asked of its standing.
func Reached(s, state, standing State) bool {
	if s == Deployed {
		return state == Deployed
	}
	return standing >= s
}

// Lapsed reports whether a commit is DEPLOYED, and would not be PROMOTABLE now.
func Lapsed(state, standing State) bool { return state == Deployed && standing < Promotable }

// A Gate is the answer to the question whether a commit or an artifact has reached a state. As
// JSON, it has at most MaxGate bytes.
type Gate struct {
	Reached  bool  `json:"reached"`
	Required State `json:"required"`
	// State and Standing are those of the commit or the artifact; nil if they are not known.
	State    *State `json:"state"`
	Standing *State `json:"standing"`
	// Reasons say what is missing. More counts those that are left out.
	Reasons []string `json:"reasons,omitempty"`
	More    int      `json:"more,omitzero"`
	// Deliveries are those of the Commit; none for an artifact.
	Deliveries []string `json:"deliveries,omitempty"`
}

const (
	// MaxGate is the maximum size of a Gate, in bytes.
	MaxGate = 1024
	// maxReasons limits the size of all reasons and deliveries of a Gate as JSON.
	maxReasons = 800
)

func newGate(required State, state, standing *State) Gate {
	return Gate{Required: required, State: state, Standing: standing,
		Reached: state != nil && Reached(required, *state, *standing)}
}

// add adds a reason, clipped as there is room for it.
func (g *Gate) add(reason string) {
	room := maxReasons
	for _, s := range slices.Concat(g.Deliveries, g.Reasons) {
		room -= sizeOf(s)
	}
	for _, most := range []int{300, 100} {
		if r := text.ClipAt(reason, most); sizeOf(r) <= room {
			g.Reasons = append(g.Reasons, r)
			return
		}
	}
	g.More++
}

// sizeOf returns the size of a text as a JSON string.
func sizeOf(s string) int {
	quoted, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		return maxReasons + 1 // it is not UTF-8
	}
	return len(quoted)
}
